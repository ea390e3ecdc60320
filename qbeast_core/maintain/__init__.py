"""Operations that keep all rows: optimize, convert, migrate."""
