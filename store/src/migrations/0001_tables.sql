-- Every time is in nanoseconds from the capture's zero. Ids are unique in the file, contiguous within a capture and in
-- the order of the capture in memory, so that an id is "first id of the capture + index".

CREATE TABLE capture (
    id              INTEGER PRIMARY KEY,
    source          TEXT NOT NULL,
    format          TEXT NOT NULL,
    simulated       INTEGER NOT NULL,
    start_unix_ns   INTEGER,            -- wall clock of the capture's zero
    window_start_ns INTEGER,            -- from when to when the source recorded
    window_end_ns   INTEGER,
    first_slice     INTEGER NOT NULL,
    slice_count     INTEGER NOT NULL
) STRICT;

CREATE TABLE string (
    id         INTEGER PRIMARY KEY,
    capture_id INTEGER NOT NULL,
    value      TEXT NOT NULL
) STRICT;

CREATE TABLE category (
    code INTEGER PRIMARY KEY,
    name TEXT NOT NULL
) STRICT;

CREATE TABLE process (
    id         INTEGER PRIMARY KEY,
    capture_id INTEGER NOT NULL,
    pid        INTEGER,
    name_id    INTEGER,
    rank       INTEGER
) STRICT;

CREATE TABLE device (
    id           INTEGER PRIMARY KEY,
    capture_id   INTEGER NOT NULL,
    process_id   INTEGER NOT NULL,
    ordinal      INTEGER NOT NULL,      -- as that process numbers its devices
    name_id      INTEGER,
    vendor_id    INTEGER,
    cores        INTEGER,
    memory_bytes INTEGER
) STRICT;

-- The slices of a track are the rows first_slice .. first_slice + slice_count of `slice`, sorted by start: the row id is
-- the index, so `slice` needs no other one.
CREATE TABLE track (
    id          INTEGER PRIMARY KEY,
    capture_id  INTEGER NOT NULL,
    process_id  INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    device      INTEGER,
    context     INTEGER,
    number      INTEGER NOT NULL,       -- thread id or stream id
    name_id     INTEGER,
    first_slice INTEGER NOT NULL,
    slice_count INTEGER NOT NULL
) STRICT;

CREATE TABLE slice (
    id          INTEGER PRIMARY KEY,
    capture_id  INTEGER NOT NULL,
    track_id    INTEGER NOT NULL,
    start_ns    INTEGER NOT NULL,
    dur_ns      INTEGER NOT NULL,
    name_id     INTEGER NOT NULL,
    category    INTEGER NOT NULL,       -- code in `category`
    depth       INTEGER NOT NULL,
    correlation INTEGER,
    link_id     INTEGER,                -- slice of the call that launched this one
    detail_id   INTEGER
) STRICT;

CREATE TABLE detail (
    id            INTEGER PRIMARY KEY,
    capture_id    INTEGER NOT NULL,
    kind          TEXT NOT NULL,        -- kernel, copy, op, collective, sync, peer, launch, failed
    graph_id      INTEGER,
    graph_node    INTEGER,
    grid_x        INTEGER,
    grid_y        INTEGER,
    grid_z        INTEGER,
    block_x       INTEGER,
    block_y       INTEGER,
    block_z       INTEGER,
    direction_id  INTEGER,
    src_id        INTEGER,
    dst_id        INTEGER,
    bytes         INTEGER,              -- moved by a copy, or this rank's payload of a collective
    shapes_id     INTEGER,
    dtypes_id     INTEGER,
    is_collective INTEGER NOT NULL,     -- whether the next columns describe a collective
    op_id         INTEGER,              -- operation of a collective, or the kernel that a launch call names
    group_id      INTEGER,
    group_size    INTEGER,
    seq           INTEGER,              -- number in the group; of a peer, the rank waited for
    dtype_id      INTEGER,
    sync          TEXT,                 -- event, stream_wait_event, stream, context
    error_code    INTEGER
) STRICT;

CREATE TABLE flow (
    id            INTEGER PRIMARY KEY,
    capture_id    INTEGER NOT NULL,
    process_id    INTEGER NOT NULL,
    number        INTEGER NOT NULL,     -- the source's own id of the pair
    kind_id       INTEGER NOT NULL,
    from_track_id INTEGER NOT NULL,
    from_ns       INTEGER NOT NULL,
    to_track_id   INTEGER NOT NULL,
    to_ns         INTEGER NOT NULL
) STRICT;

CREATE TABLE counter_track (
    id           INTEGER PRIMARY KEY,
    capture_id   INTEGER NOT NULL,
    process_id   INTEGER NOT NULL,
    device       INTEGER,
    name_id      INTEGER NOT NULL,
    unit         TEXT NOT NULL,
    sample_count INTEGER NOT NULL
) STRICT;

CREATE TABLE counter (
    id               INTEGER PRIMARY KEY,
    capture_id       INTEGER NOT NULL,
    counter_track_id INTEGER NOT NULL,
    t_ns             INTEGER NOT NULL,
    value            REAL               -- NULL is a sample that is not a number
) STRICT;

-- One row for each slice that carries a description of its collective.
CREATE TABLE collective (
    slice_id   INTEGER PRIMARY KEY,
    capture_id INTEGER NOT NULL,
    detail_id  INTEGER NOT NULL
) STRICT;

CREATE TABLE manifest (
    capture_id INTEGER NOT NULL,
    key        TEXT NOT NULL,
    value      TEXT NOT NULL,
    provenance TEXT NOT NULL,           -- observed, declared, simulated
    PRIMARY KEY (capture_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE import_stat (
    id         INTEGER PRIMARY KEY,
    capture_id INTEGER NOT NULL,
    name       TEXT NOT NULL,
    severity   TEXT NOT NULL,
    count      INTEGER NOT NULL,
    example    TEXT
) STRICT;

CREATE TABLE import_ledger (
    id         INTEGER PRIMARY KEY,
    capture_id INTEGER NOT NULL,
    category   TEXT NOT NULL,
    read       INTEGER NOT NULL,
    kept       INTEGER NOT NULL,
    time_ns    INTEGER NOT NULL,
    note       TEXT NOT NULL
) STRICT;

-- The slices once more, column by column, because a timeline reads them some fifty times faster so. Rebuildable from
-- `slice`; a chunk of another version is ignored.
CREATE TABLE lane_chunk (
    id         INTEGER PRIMARY KEY,
    capture_id INTEGER NOT NULL,
    track_id   INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    n          INTEGER NOT NULL,
    ts_min     INTEGER NOT NULL,
    ts_max     INTEGER NOT NULL,
    columns    BLOB NOT NULL
) STRICT;

-- What analysis says of a capture.

CREATE TABLE name_op (
    name_id    INTEGER PRIMARY KEY,
    capture_id INTEGER NOT NULL,
    op         TEXT NOT NULL            -- canonical operator
) STRICT;

CREATE TABLE step (
    id         INTEGER PRIMARY KEY,
    capture_id INTEGER NOT NULL,
    rank       INTEGER NOT NULL,
    device     INTEGER NOT NULL,        -- as the rank's process numbers its devices
    number     INTEGER NOT NULL,        -- position in the run of its rank, from 0
    label      TEXT NOT NULL,           -- what the source calls the step, if it does
    class      TEXT NOT NULL,
    anchor     TEXT NOT NULL,           -- how the steps of the rank were found
    confidence TEXT NOT NULL,           -- of the anchor: low, medium, high
    selection  TEXT NOT NULL,           -- steady: it counts in the report; else why it does not
    start_ns   INTEGER NOT NULL,
    dur_ns     INTEGER NOT NULL
) STRICT;

-- The ns of a step add up to its dur_ns exactly.
CREATE TABLE attribution (
    step_id    INTEGER NOT NULL,
    capture_id INTEGER NOT NULL,
    rank       INTEGER NOT NULL,
    bucket     TEXT NOT NULL,
    layer      TEXT NOT NULL,           -- operator, runtime, communication, measurement
    ns         INTEGER NOT NULL,
    provenance TEXT NOT NULL,           -- measured, modelled
    PRIMARY KEY (step_id, bucket)
) STRICT, WITHOUT ROWID;

-- In the order of the report: the most important first.
CREATE TABLE finding (
    id         INTEGER PRIMARY KEY,
    capture_id INTEGER NOT NULL,
    rule       TEXT NOT NULL,
    layer      TEXT NOT NULL,
    severity   TEXT NOT NULL,
    confidence TEXT NOT NULL,
    class      TEXT,                    -- NULL for the whole capture
    claim      TEXT NOT NULL,
    from_ns    INTEGER NOT NULL,        -- mean step of the class
    to_ns_low  INTEGER,                 -- what it would become; NULL without an estimate
    to_ns_high INTEGER,
    method     TEXT NOT NULL,           -- replay, bound, none
    body       TEXT NOT NULL            -- as in the JSON report; its slice rows count from the capture's first_slice
) STRICT;

CREATE TABLE probe_result (
    id         INTEGER PRIMARY KEY,
    capture_id INTEGER NOT NULL,
    probe      TEXT NOT NULL,
    metric     TEXT NOT NULL,
    unit       TEXT NOT NULL,
    value      REAL,                    -- NULL when it could not be measured
    low        REAL,
    high       REAL,
    reason     TEXT                     -- why there is no value
) STRICT;
