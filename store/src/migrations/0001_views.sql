-- Names resolved, for people. Device work is reached through the row range of its track, never by a scan of `slice`:
-- CROSS JOIN keeps SQLite from turning the two around.

CREATE VIEW rank AS
SELECT p.capture_id, p.rank, p.id AS process_id, p.pid, n.value AS process
FROM process p LEFT JOIN string n ON n.id = p.name_id
WHERE p.rank IS NOT NULL;

CREATE VIEW kernels AS
SELECT s.capture_id, p.rank, t.device, t.number AS stream, n.value AS name, o.op,
       s.start_ns, s.dur_ns, s.correlation, d.graph_id, d.graph_node, l.start_ns AS launch_ns
FROM track t
CROSS JOIN slice s ON s.id >= t.first_slice AND s.id < t.first_slice + t.slice_count
LEFT JOIN process p ON p.id = t.process_id
LEFT JOIN string n ON n.id = s.name_id
LEFT JOIN name_op o ON o.name_id = s.name_id
LEFT JOIN detail d ON d.id = s.detail_id
LEFT JOIN slice l ON l.id = s.link_id
WHERE t.kind = 'device_queue' AND s.category IN (0, 3);

CREATE VIEW copies AS
SELECT s.capture_id, p.rank, t.device, t.number AS stream, n.value AS name,
       dir.value AS direction, src.value AS src, dst.value AS dst, d.bytes,
       s.start_ns, s.dur_ns, s.correlation, d.graph_node, l.start_ns AS launch_ns
FROM track t
CROSS JOIN slice s ON s.id >= t.first_slice AND s.id < t.first_slice + t.slice_count
LEFT JOIN process p ON p.id = t.process_id
LEFT JOIN string n ON n.id = s.name_id
LEFT JOIN detail d ON d.id = s.detail_id
LEFT JOIN string dir ON dir.id = d.direction_id
LEFT JOIN string src ON src.id = d.src_id
LEFT JOIN string dst ON dst.id = d.dst_id
LEFT JOIN slice l ON l.id = s.link_id
WHERE t.kind = 'device_queue' AND s.category IN (1, 2);

-- A launch is a host call that device work names as its cause; a graph launch has many pieces of work.
CREATE VIEW launches AS
SELECT l.capture_id, p.rank, t.number AS thread, n.value AS name, l.start_ns, l.dur_ns, l.correlation,
       w.work, w.first_start_ns, w.last_end_ns
FROM (
    SELECT s.link_id, count(*) AS work, min(s.start_ns) AS first_start_ns, max(s.start_ns + s.dur_ns) AS last_end_ns
    FROM track q
    CROSS JOIN slice s ON s.id >= q.first_slice AND s.id < q.first_slice + q.slice_count
    WHERE q.kind = 'device_queue' AND s.link_id IS NOT NULL
    GROUP BY s.link_id
) w
CROSS JOIN slice l ON l.id = w.link_id
LEFT JOIN track t ON t.id = l.track_id
LEFT JOIN process p ON p.id = t.process_id
LEFT JOIN string n ON n.id = l.name_id;

CREATE VIEW syncs AS
SELECT s.capture_id, p.rank, c.name AS category, t.device, t.number AS track, n.value AS name, d.sync,
       s.start_ns, s.dur_ns, s.correlation
FROM slice s
LEFT JOIN category c ON c.code = s.category
LEFT JOIN track t ON t.id = s.track_id
LEFT JOIN process p ON p.id = t.process_id
LEFT JOIN string n ON n.id = s.name_id
LEFT JOIN detail d ON d.id = s.detail_id
WHERE s.category IN (8, 23);

CREATE VIEW ranges AS
SELECT s.capture_id, p.rank, c.name AS category, t.device, t.number AS track, n.value AS name, s.depth,
       s.start_ns, s.dur_ns
FROM slice s
LEFT JOIN category c ON c.code = s.category
LEFT JOIN track t ON t.id = s.track_id
LEFT JOIN process p ON p.id = t.process_id
LEFT JOIN string n ON n.id = s.name_id
WHERE s.category IN (10, 18);

CREATE VIEW collectives AS
SELECT s.capture_id, p.rank, c.name AS category, t.device, t.number AS track, n.value AS name,
       op.value AS op, g.value AS group_name, d.group_size, d.seq, d.bytes, ty.value AS dtype,
       s.start_ns, s.dur_ns, s.correlation, l.start_ns AS launch_ns
FROM collective k
CROSS JOIN slice s ON s.id = k.slice_id
LEFT JOIN category c ON c.code = s.category
LEFT JOIN track t ON t.id = s.track_id
LEFT JOIN process p ON p.id = t.process_id
LEFT JOIN string n ON n.id = s.name_id
LEFT JOIN detail d ON d.id = k.detail_id
LEFT JOIN string op ON op.id = d.op_id
LEFT JOIN string g ON g.id = d.group_id
LEFT JOIN string ty ON ty.id = d.dtype_id
LEFT JOIN slice l ON l.id = s.link_id;
