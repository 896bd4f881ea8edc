"""The paper's learned methods: the amortised encoder, and guided diffusion from a warm start."""
