//! New databases.

use std::{fs, io, path::Path};

use sqlx::{AssertSqlSafe, Connection, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::run::WriteError;

/// Makes a database in the place of any file there and has `fill` write into it, all of it or nothing.
pub(crate) fn create(
    path: &Path,
    fill: impl AsyncFnOnce(&mut SqliteConnection) -> sqlx::Result<()>,
) -> Result<(), WriteError> {
    let named = || path.display().to_string();
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            return Err(WriteError::Io { path: named(), source });
        }
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|source| WriteError::Io { path: named(), source })?;
    let write = async {
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
        let mut file = SqliteConnection::connect_with(&options).await?;
        let mut db = file.begin().await?;
        fill(&mut db).await?;
        db.commit().await?;
        file.close().await
    };
    runtime.block_on(write).map_err(|source| WriteError::Sqlite { path: named(), source })
}

/// Drops those of `tables` that have no rows.
pub(crate) async fn drop_empty(db: &mut SqliteConnection, tables: &[&str]) -> sqlx::Result<()> {
    for table in tables {
        let empty = format!("SELECT NOT EXISTS (SELECT 1 FROM {table})");
        if sqlx::query_scalar::<_, bool>(AssertSqlSafe(empty)).fetch_one(&mut *db).await? {
            sqlx::raw_sql(AssertSqlSafe(format!("DROP TABLE {table}"))).execute(&mut *db).await?;
        }
    }
    Ok(())
}
