"""Rules of the schemes that the survey describes, checked on time lines."""
