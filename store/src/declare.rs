//! What a person says of the captures of a file, written into it; what a capture shows of itself stays.

use std::path::Path;

use sqlx::Connection;

use super::{Error, open::Session, reader::Reader, replace::Replacement};

/// Every capture of the file, unless it has observed that field.
const SQL: &str = "INSERT INTO manifest (capture_id, key, value, provenance) \
     SELECT id, ?1, ?2, 'declared' FROM capture WHERE true \
     ON CONFLICT (capture_id, key) DO UPDATE SET value = excluded.value, provenance = excluded.provenance \
     WHERE provenance <> 'observed'";

/// Declares fields, each a key with its value, of all captures of a file. The file is replaced when that is done, so it is
/// whole at any time; everything else in it stays.
///
/// # Errors
/// [`Error::NotACapture`], [`Error::Version`] or [`Error::Damaged`] when it is no capture file of ours, [`Error::Io`] or
/// [`Error::Sqlite`] when it cannot be written; it is as before then.
pub fn declare(path: &Path, fields: &[(&str, &str)]) -> Result<(), Error> {
    // A damaged file is refused before anything else.
    Session::read(path)?;
    // From here to the end nobody else replaces the file: of two edits at once the second begins with what the first made.
    let file = Replacement::begin(path)?;
    let mut reader = Reader::open(path)?;
    // Every byte is held against the seal that it had before it gets another.
    reader.copy_to(file.file(), path)?;
    let mut session = Session::edit(file.path(), reader.version)?;
    let written = session.run(async |connection, _| {
        let mut all = connection.begin().await?;
        for (key, value) in fields {
            sqlx::query(SQL).bind(*key).bind(*value).execute(&mut *all).await?;
        }
        all.commit().await
    });
    written.map_err(Error::sqlite(path, "write"))?;
    session.finish()?;
    file.commit()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use model::{Provenance, TraceBuilder, TraceSink};

    use super::*;

    #[test]
    fn a_declared_field_reaches_every_capture_that_has_not_observed_it() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("two.strato");
        let capture = |provenance| {
            let mut builder = TraceBuilder::new("run", "kineto");
            builder.manifest("caps.batch", "8", provenance);
            builder.finish()
        };
        crate::save(&file, &[capture(Provenance::Observed), capture(Provenance::Declared)]).unwrap();
        declare(&file, &[("caps.batch", "9"), ("model.name", "m")]).unwrap();
        let traces = crate::load(&file).unwrap();
        let of = |n: usize, key: &str| traces[n].manifest.get(key).map(|e| (e.value.as_str(), e.provenance)).unwrap();
        assert_eq!(
            [of(0, "caps.batch"), of(1, "caps.batch")],
            [("8", Provenance::Observed), ("9", Provenance::Declared)]
        );
        assert_eq!([of(0, "model.name"), of(1, "model.name")], [("m", Provenance::Declared); 2]);
        std::fs::write(directory.path().join("x"), "no").unwrap();
        assert!(matches!(declare(&directory.path().join("x"), &[]), Err(Error::NotACapture { .. })));
    }

    #[test]
    fn a_file_with_a_trigger_is_not_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("hostile.strato");
        let mut builder = TraceBuilder::new("run", "kineto");
        builder.manifest("caps.batch", "8", Provenance::Observed);
        crate::save(&file, &[builder.finish()]).unwrap();
        let mut session = Session::edit(&file, crate::SCHEMA_VERSION).unwrap();
        let trigger = "CREATE TRIGGER t BEFORE INSERT ON manifest BEGIN UPDATE manifest SET value = '9'; END";
        session.run(async |connection, _| sqlx::query(trigger).execute(connection).await).unwrap();
        session.finish().unwrap();
        assert!(matches!(declare(&file, &[("model.name", "m")]), Err(Error::Damaged { .. })));
        assert_eq!(crate::load(&file).unwrap()[0].manifest.value("caps.batch"), Some("8"));
    }
}
