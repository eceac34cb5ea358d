-- What an analysis of a whole job summed: the parts of each rank's steps, and what moved between two ranks. Neither lies on a
-- time axis.
CREATE TABLE step_sum (
    id         INTEGER PRIMARY KEY,
    capture_id INTEGER NOT NULL,
    step_id    INTEGER NOT NULL,        -- string: the step as the source names it
    rank       INTEGER NOT NULL,
    stage      INTEGER,                 -- of the pipeline, from 0
    part       TEXT NOT NULL,           -- such as computing, exposed_communication or free
    ns         INTEGER NOT NULL
) STRICT;

CREATE TABLE link_sum (
    id           INTEGER PRIMARY KEY,
    capture_id   INTEGER NOT NULL,
    from_rank    INTEGER NOT NULL,
    to_rank      INTEGER NOT NULL,
    transport_id INTEGER NOT NULL,      -- string: such as HCCS, RDMA or LOCAL
    bytes        INTEGER NOT NULL,
    ns           INTEGER NOT NULL       -- sum of the times of the transfers
) STRICT;

CREATE VIEW step_sums AS
SELECT s.capture_id, n.value AS step, s.rank, s.stage, s.part, s.ns
FROM step_sum s
LEFT JOIN string n ON n.id = s.step_id;

CREATE VIEW link_sums AS
SELECT l.capture_id, l.from_rank, l.to_rank, n.value AS transport, l.bytes, l.ns,
       l.bytes * 1.0 / nullif(l.ns, 0) AS gb_per_s
FROM link_sum l
LEFT JOIN string n ON n.id = l.transport_id;
