"""Many cases on all cores or on a cluster, by Dask: the workers, their tasks, and what is written chunk by chunk."""
