-- Ceilings of the machine: value is the median of the repeats, low and high their least and greatest.
ALTER TABLE probe_result ADD COLUMN setting TEXT NOT NULL DEFAULT '';   -- such as threads=2 bytes=4096
ALTER TABLE probe_result ADD COLUMN mad REAL;                           -- median distance from the median
ALTER TABLE probe_result ADD COLUMN repeats INTEGER;

-- On what machine and under what load they were measured.
CREATE TABLE probe_provenance (
    id         INTEGER PRIMARY KEY,
    capture_id INTEGER NOT NULL,
    key        TEXT NOT NULL,
    value      TEXT,                    -- NULL when it could not be read
    reason     TEXT                     -- why there is no value
) STRICT;
