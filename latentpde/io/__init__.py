"""Files in and out: reading checks, writing never leaves half a file."""
