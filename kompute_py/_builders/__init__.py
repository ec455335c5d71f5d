"""Operations from one line: elementwise ones, reductions and scans. They use what users have."""
