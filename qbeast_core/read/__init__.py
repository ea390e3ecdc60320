"""Operations that only read a table: samples, estimates, metrics, checks and pictures."""
