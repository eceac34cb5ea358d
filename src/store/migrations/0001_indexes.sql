-- Made after the load. Only the views over host slices need one; without it they read every slice of the file.

CREATE INDEX slice_sync ON slice (id) WHERE category IN (8, 23);
CREATE INDEX slice_range ON slice (id) WHERE category IN (10, 18);
