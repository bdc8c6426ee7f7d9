//! Backup and restore of a cluster's storage.

use std::fs;
use std::path::{Path, PathBuf};

use super::{ControlPlane, PATIENCE, Result};

impl ControlPlane {
    /// Copies the storage. The API server is down meanwhile.
    pub async fn back_up_storage(&mut self) -> Result<()> {
        self.stop_storage().await?;
        copy(&self.data(), &self.backup())?;
        self.start_storage().await
    }

    /// Restores the copy as an administrator would, with the API server stopped. Resource versions
    /// go backwards.
    pub async fn put_back_storage(&mut self) -> Result<()> {
        self.stop_storage().await?;
        fs::remove_dir_all(self.data())?;
        copy(&self.backup(), &self.data())?;
        self.start_storage().await
    }

    async fn stop_storage(&mut self) -> Result<()> {
        self.stop_api_server()?;
        self.etcd.terminate(PATIENCE).await.map(drop)
    }

    async fn start_storage(&mut self) -> Result<()> {
        self.etcd = self
            .sandbox
            .start("etcd", self.programs.etcd(self.folder(), self.etcd_port))?;
        self.start_api_server().await
    }

    fn data(&self) -> PathBuf {
        self.folder().join("etcd")
    }

    fn backup(&self) -> PathBuf {
        self.folder().join("etcd.backup")
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&from, &to)?;
        } else {
            fs::copy(from, to)?;
        }
    }
    Ok(())
}
