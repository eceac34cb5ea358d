//! Damage of a capture file is seen by whoever reads what was damaged, and two changes at once both count.

use std::{collections::BTreeMap, time::Duration};

use super::*;
use crate::{Fault, seal::Seal, verify};

/// A file of some fifty pages, and what is asked of it.
fn file(directory: &Path) -> PathBuf {
    let path = directory.join("a.strato");
    let mut b = TraceBuilder::new("run.json", "kineto");
    let process = b.process(7);
    for id in 0..3 {
        let track = b.track(TrackKey { kind: TrackKind::DeviceQueue, process, device: Some(0), context: None, id });
        for i in 0..2000i64 {
            let name = b.intern(&format!("kernel {}", i % 700));
            let (start, dur, correlation) = (i * 20, 5 + i % 7, Some(i * 3));
            b.slice(Slice { track, start, dur, name, category: Category::Kernel, correlation, detail: None });
        }
    }
    b.manifest("model.name", "m", Provenance::Declared);
    save(&path, &[b.finish()]).unwrap();
    path
}

const QUESTIONS: [&str; 4] = [
    "SELECT count(*), sum(dur_ns) FROM kernels",
    "SELECT name, count(*), sum(start_ns) FROM kernels GROUP BY name ORDER BY name",
    "SELECT * FROM manifest",
    "SELECT id, length(columns) FROM lane_chunk",
];

fn answers(path: &Path) -> Vec<Result<Vec<Vec<Value>>, Error>> {
    QUESTIONS.iter().map(|sql| ask(path, sql).map(|table| table.1)).collect()
}

#[test]
fn a_file_with_any_block_changed_gives_the_same_answer_or_none() {
    let (keep, _) = temporary();
    let path = file(keep.path());
    let (whole, trace, expected) = (std::fs::read(&path).unwrap(), load(&path).unwrap().remove(0), answers(&path));
    assert!(verify(&path).unwrap().is_sound());
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let blocks = whole.len() / 4096;
    for block in (0..blocks).step_by(3) {
        let at = block * 4096;
        let mut changes: Vec<(&str, Vec<u8>)> = Vec::new();
        let mut changed = |what, change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = whole.clone();
            change(&mut bytes);
            if bytes != whole {
                changes.push((what, bytes));
            }
        };
        changed("zeros", &|bytes| bytes[at..at + 4096].fill(0));
        changed("one bit", &|bytes| bytes[at + block * 37 % 4096] ^= 1 << (block % 8));
        changed("swapped", &|bytes| {
            let other = (block * 7 + 3) % blocks * 4096;
            let moved = bytes[at..at + 4096].to_vec();
            bytes.copy_within(other..other + 4096, at);
            bytes[other..other + 4096].copy_from_slice(&moved);
        });
        changed("cut", &|bytes| bytes.truncate(at + block % 5));
        for (what, bytes) in changes {
            std::fs::write(&path, bytes).unwrap();
            match load(&path) {
                Ok(loaded) => assert_same(&loaded[0], &trace),
                Err(e) => {
                    assert!(matches!(e, Error::Altered { .. } | Error::NotACapture { .. }), "{what} {block}: {e}");
                    *seen.entry("load").or_default() += 1;
                }
            }
            for (now, before) in answers(&path).into_iter().zip(&expected) {
                match now {
                    Ok(now) => assert_eq!(&now, before.as_ref().unwrap(), "{what} {block}"),
                    Err(e) => {
                        assert!(matches!(e, Error::Altered { .. } | Error::NotACapture { .. }), "{what} {block}: {e}");
                        *seen.entry(what).or_default() += 1;
                    }
                }
            }
            let verified = verify(&path);
            assert!(
                verified.is_err() || verified.is_ok_and(|v| !v.is_sound() && !v.faults.is_empty()),
                "{what} {block}"
            );
        }
    }
    assert!(["zeros", "one bit", "swapped", "cut", "load"].iter().all(|kind| seen[kind] > 5), "{seen:?}");
}

#[test]
fn verify_names_the_table_that_is_damaged() {
    let (keep, _) = temporary();
    let path = file(keep.path());
    let page = |table: &str| match &ask(&path, &format!("SELECT max(pageno) FROM dbstat WHERE name = '{table}'"))
        .unwrap()
        .1[0][0]
    {
        Value::Integer(page) => *page as usize,
        other => panic!("{other:?}"),
    };
    let whole = std::fs::read(&path).unwrap();
    for table in ["slice", "string", "manifest", "lane_chunk", "category"] {
        let mut bytes = whole.clone();
        bytes[(page(table) - 1) * 16 * 1024 + 9000] ^= 4;
        std::fs::write(&path, &bytes).unwrap();
        let faults = verify(&path).unwrap().faults;
        assert!(matches!(faults[0], Fault::Pages { count: 1, .. }), "{faults:?}");
        assert!(matches!(&faults[1..], [Fault::Table(named)] if named == table), "{table}: {faults:?}");
        std::fs::write(&path, &whole).unwrap();
    }
    assert!(verify(&path).unwrap().is_sound());
}

#[test]
fn verify_holds_rows_and_columns_against_each_other() {
    type Expected = fn(&Fault) -> bool;
    let cases: [(&str, Expected); 4] = [
        ("UPDATE slice SET dur_ns = dur_ns + 1 WHERE id = 2100", |f| {
            matches!(f, Fault::Differs { capture: 1, track: 1 })
        }),
        ("DELETE FROM slice WHERE id = 5", |f| matches!(f, Fault::Unreadable(_))),
        ("INSERT INTO slice SELECT 9999, id, 77, 1, 1, 1, 0, 0, 0, NULL, NULL FROM capture", |f| {
            matches!(f, Fault::Stray(1))
        }),
        ("UPDATE lane_chunk SET n = n - 1", |f| matches!(f, Fault::Unreadable(_))),
    ];
    for (sql, expected) in cases {
        let (keep, _) = temporary();
        let path = file(keep.path());
        tamper(&path, sql);
        let faults = verify(&path).unwrap().faults;
        assert!(faults.len() == 1 && expected(&faults[0]), "{sql}: {faults:?}");
    }
}

#[test]
fn a_file_that_another_program_wrote_to_is_refused_and_one_without_a_seal_is_not_called_sound() {
    let (_keep, path) = temporary();
    save(&path, &[small()]).unwrap();
    change(&path, "UPDATE slice SET dur_ns = 1");
    assert!(matches!(load(&path), Err(Error::Altered { .. })));
    // As a program before there were seals wrote it.
    save(&path, &[small()]).unwrap();
    tamper(&path, "PRAGMA user_version = 5");
    let bytes = std::fs::read(&path).unwrap();
    let length = Seal::read(&std::fs::File::open(&path).unwrap()).unwrap().unwrap().length();
    std::fs::write(&path, &bytes[..length as usize]).unwrap();
    assert_same(&load(&path).unwrap()[0], &small());
    let found = verify(&path).unwrap();
    assert_eq!((found.sealed, found.is_sound(), found.faults.len(), found.version), (false, false, 0, Some(5)));
    crate::declare(&path, &[("model.name", "m")]).unwrap();
    assert_eq!(load(&path).unwrap()[0].manifest.value("model.name"), Some("m"));
    std::fs::write(&path, &bytes[..length as usize - 5000]).unwrap();
    assert!(matches!(load(&path), Err(Error::Altered { .. })));
}

#[test]
fn a_change_is_sealed_and_damage_is_not_sealed_with_it() {
    let (keep, _) = temporary();
    let path = file(keep.path());
    crate::declare(&path, &[("model.name", "n")]).unwrap();
    assert!(verify(&path).unwrap().is_sound());
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 60_000;
    bytes[last] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(crate::declare(&path, &[("model.name", "o")]), Err(Error::Altered { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!(keep.path().read_dir().unwrap().count(), 1);
}

#[test]
fn two_changes_at_once_both_count() {
    let (_keep, path) = temporary();
    save(&path, &[small()]).unwrap();
    let keys: Vec<String> = (0..8).map(|i| format!("caps.k{i}")).collect();
    std::thread::scope(|scope| {
        for key in &keys {
            let path = &path;
            scope.spawn(move || crate::declare(path, &[(key, "1")]).unwrap());
        }
    });
    let manifest = load(&path).unwrap().remove(0).manifest;
    assert!(keys.iter().all(|key| manifest.value(key) == Some("1")));
    assert!(verify(&path).unwrap().is_sound());
}

#[test]
fn a_query_leaves_nothing_beside_a_file_that_other_programs_write_to() {
    let (keep, path) = temporary();
    save(&path, &[small()]).unwrap();
    tamper(&path, "PRAGMA journal_mode = WAL");
    let wal = keep.path().join("a.strato-wal");
    std::fs::write(&wal, "pages of another program").unwrap();
    assert_eq!(ask(&path, "SELECT count(*) FROM slice").unwrap().1, [[Value::Integer(7)]]);
    assert_same(&load(&path).unwrap()[0], &small());
    assert_eq!(std::fs::read(&wal).unwrap(), b"pages of another program");
    assert_eq!(keep.path().read_dir().unwrap().count(), 2);
}

#[test]
fn no_statement_makes_or_opens_another_file() {
    let (keep, path) = temporary();
    save(&path, &[small()]).unwrap();
    let other = keep.path().join("other");
    let (other, new) = (other.display(), keep.path().join("new"));
    std::fs::write(keep.path().join("other"), "").unwrap();
    for sql in [
        format!("VACUUM INTO '{}'", new.display()),
        format!("VACUUM INTO 'file:{}?vfs=unix'", new.display()),
        format!("ATTACH '{other}' AS o"),
        format!("ATTACH 'file:{other}?vfs=unix' AS o"),
        "PRAGMA journal_mode = WAL".to_owned(),
        "CREATE TEMP TABLE t(a)".to_owned(),
    ] {
        if let Ok(table) = ask(&path, &sql) {
            assert!(table.1.iter().flatten().all(|v| *v != text("wal")), "{sql}: {:?}", table.1);
        }
        assert_eq!(keep.path().read_dir().unwrap().count(), 2, "{sql}");
    }
    let told = ask(&path, &format!("VACUUM INTO '{}'", new.display())).err().unwrap().to_string();
    assert!(told.contains("no other file is opened or made"), "{told}");
}

#[test]
fn a_statement_without_an_end_is_ended() {
    let (_keep, path) = temporary();
    save(&path, &[small()]).unwrap();
    let endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t";
    let mut table = Table(Vec::new(), Vec::new());
    let told = query(&path, endless, Some(Duration::from_millis(50)), &mut table).unwrap_err().to_string();
    assert!(told.contains("not done after 50ms") && told.contains("--timeout"), "{told}");
    query(&path, "SELECT 1", Some(Duration::from_secs(600)), &mut table).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_no_unicode_can_be_written_and_opened_again() {
    use std::os::unix::ffi::OsStrExt;
    let keep = tempfile::tempdir().unwrap();
    let path = keep.path().join(std::ffi::OsStr::from_bytes(b"a\xff.strato"));
    save(&path, &[small()]).unwrap();
    assert_same(&load(&path).unwrap()[0], &small());
    crate::declare(&path, &[("model.name", "m")]).unwrap();
    assert_eq!(ask(&path, "SELECT count(*) FROM slice").unwrap().1, [[Value::Integer(7)]]);
    assert!(verify(&path).unwrap().is_sound());
}

#[test]
#[ignore = "by hand: prints what checking costs beside loading, STRATO_FIGURES names a capture file"]
fn what_checking_costs() {
    let path = std::path::PathBuf::from(std::env::var_os("STRATO_FIGURES").unwrap());
    let (_keep, sealed) = temporary();
    let unsealed = sealed.with_extension("old");
    save(&sealed, &load(&path).unwrap()).unwrap();
    change(&sealed, "PRAGMA user_version = 5");
    let length = Seal::read(&std::fs::File::open(&sealed).unwrap()).unwrap().unwrap().length();
    let bytes = std::fs::read(&sealed).unwrap();
    std::fs::write(&unsealed, &bytes[..length as usize]).unwrap();
    Seal::put_on(&sealed).unwrap();
    let timed = |work: &dyn Fn()| {
        let began = std::time::Instant::now();
        work();
        began.elapsed()
    };
    let count = |path: &Path| {
        assert_eq!(ask(path, "SELECT count(*), sum(dur_ns) FROM kernels").unwrap().1.len(), 1);
    };
    let mut all: [Vec<Duration>; 6] = Default::default();
    for _ in 0..41 {
        let times = [
            timed(&|| drop(load(&unsealed).unwrap())),
            timed(&|| drop(load(&sealed).unwrap())),
            timed(&|| count(&unsealed)),
            timed(&|| count(&sealed)),
            timed(&|| Seal::put_on(&sealed).unwrap()),
            timed(&|| {
                let mut reader = crate::reader::Reader::open(&sealed).unwrap();
                (0..reader.seal.as_ref().unwrap().pages())
                    .for_each(|page| assert_eq!(reader.check(page), crate::reader::Outcome::Whole));
            }),
        ];
        all.iter_mut().zip(times).for_each(|(all, time)| all.push(time));
    }
    // The same as the clock within sees it, since the times above differ more from run to run.
    let mut shares: Vec<f64> = (0..41)
        .map(|_| {
            let began = std::time::Instant::now();
            let reader = crate::reader::Reader::open(&sealed).unwrap();
            let checked = std::sync::Arc::clone(&reader.checked);
            let mut session = crate::open::Session::over(&sealed, reader).unwrap();
            drop(crate::load::load_from(&mut session, crate::load::Form::Columns).unwrap());
            let time = checked.time.load(std::sync::atomic::Ordering::Relaxed) as f64;
            100.0 * time / began.elapsed().as_nanos() as f64
        })
        .collect();
    shares.sort_by(f64::total_cmp);
    println!("checking is {:.2} % of loading ({:.2} to {:.2})", shares[20], shares[0], shares[40]);
    println!("{} bytes; median and best of 41, in turn", bytes.len());
    let names = ["load without", "load with seal", "query without", "query with seal", "to seal", "to check all pages"];
    for (name, mut times) in names.iter().zip(all) {
        times.sort();
        println!("{name:20} {:?} {:?}", times[20], times[0]);
    }
}
