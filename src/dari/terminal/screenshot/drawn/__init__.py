"""Characters that are geometry: drawn to the pixel, so that they meet their neighbours without a gap."""
