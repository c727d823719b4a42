"""What the overview says of duplicate ACKs and recovery, checked on time lines."""
