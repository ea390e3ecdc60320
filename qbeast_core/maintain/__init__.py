"""Operations that do not change rows: optimize, convert, migrate."""
