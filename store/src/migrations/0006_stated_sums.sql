-- What the profiler summed of the capture itself and left beside it, to be held against the rows.
CREATE TABLE stated_sum (
    id         INTEGER PRIMARY KEY,
    capture_id INTEGER NOT NULL,
    process    INTEGER,                 -- of the capture, from 0; absent where the capture holds one rank
    source_id  INTEGER NOT NULL,        -- string: the file or table that says it
    what       TEXT NOT NULL,           -- such as computing, communication, kernels or host_calls
    name_id    INTEGER,                 -- string: of which calls, where each was summed by its name
    count      INTEGER,                 -- how many, where the source says it
    ns         INTEGER NOT NULL
) STRICT;

CREATE VIEW stated_sums AS
SELECT s.capture_id, s.process, f.value AS source, s.what, n.value AS name, s.count, s.ns
FROM stated_sum s
LEFT JOIN string f ON f.id = s.source_id
LEFT JOIN string n ON n.id = s.name_id;
