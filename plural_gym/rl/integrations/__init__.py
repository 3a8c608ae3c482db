"""What libraries have to be told once: each module registers this package's spaces with one, on import."""
