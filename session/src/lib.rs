//! From paths to reports: captures opened, examined, diagnosed and compared, without a terminal.
