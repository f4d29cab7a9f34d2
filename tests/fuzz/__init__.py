"""Laws that hold for any bytes, and the programs that look for bytes that break them."""
