"""Operations from one line: by elements, reductions and scans. They use what users have."""
