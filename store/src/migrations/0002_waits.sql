-- Why a rank waited in a collective: what the late rank spent longer on than the waiting one, signed. The rows of one
-- collective on one rank add up to its wait less what the ranks left apart.
CREATE TABLE wait_cause (
    id         INTEGER PRIMARY KEY,
    capture_id INTEGER NOT NULL,
    step_id    INTEGER NOT NULL,
    slice_id   INTEGER NOT NULL,        -- the collective on the waiting rank
    rank       INTEGER NOT NULL,        -- that waited
    late_rank  INTEGER NOT NULL,        -- that it waited for
    bucket     TEXT NOT NULL,
    layer      TEXT NOT NULL,
    ns         INTEGER NOT NULL,
    provenance TEXT NOT NULL            -- measured; modelled where the ranks left the collective far apart
) STRICT;
