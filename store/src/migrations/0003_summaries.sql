-- What a source says of executions of a kernel without saying when they ran: sums over the run, and measurements of
-- executions that a kernel profiler ran apart from it. Neither lies on a time axis.
CREATE TABLE kernel_summary (
    id         INTEGER PRIMARY KEY,
    capture_id INTEGER NOT NULL,
    name_id    INTEGER NOT NULL,
    conditions TEXT NOT NULL,           -- run, or isolated: alone, its duration is no duration of the run
    count      INTEGER NOT NULL,        -- executions
    total_ns   INTEGER,                 -- sum of their durations
    min_ns     INTEGER,
    max_ns     INTEGER,
    grid_x     INTEGER,                 -- blocks launched
    grid_y     INTEGER,
    grid_z     INTEGER,
    block_x    INTEGER,                 -- threads of a block
    block_y    INTEGER,
    block_z    INTEGER
) STRICT;

CREATE TABLE kernel_metric (
    id         INTEGER PRIMARY KEY,
    capture_id INTEGER NOT NULL,
    summary_id INTEGER NOT NULL,
    metric     TEXT NOT NULL,           -- such as compute or occupancy; stall for a reason that warps waited
    reason_id  INTEGER,                 -- string: the reason of a stall
    value      REAL NOT NULL            -- in the metric's unit; a stall in cycles per instruction issued
) STRICT;

CREATE VIEW summaries AS
SELECT s.capture_id, n.value AS name, o.op, s.conditions, s.count, s.total_ns, s.min_ns, s.max_ns,
       s.grid_x, s.grid_y, s.grid_z, s.block_x, s.block_y, s.block_z, s.id AS summary_id
FROM kernel_summary s
LEFT JOIN string n ON n.id = s.name_id
LEFT JOIN name_op o ON o.name_id = s.name_id;

CREATE VIEW measurements AS
SELECT m.capture_id, n.value AS name, m.metric, r.value AS reason, m.value, m.summary_id
FROM kernel_metric m
JOIN kernel_summary s ON s.id = m.summary_id
LEFT JOIN string n ON n.id = s.name_id
LEFT JOIN string r ON r.id = m.reason_id;
