-- What a diagnosis found, in place of three tables of version 1 that nothing ever filled.

DROP TABLE step;
DROP TABLE attribution;
DROP TABLE finding;

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
