//! A certificate authority of a test's own: a root, what it signed, and what that signed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};

pub(crate) struct Authority {
    root: CertifiedIssuer<'static, KeyPair>,
    dir: tempfile::TempDir,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = CertifiedIssuer::self_signed(authority(), KeyPair::generate().unwrap()).unwrap();
        std::fs::write(dir.path().join("ca.pem"), root.pem()).unwrap();
        Self { root, dir }
    }

    /// The root in PEM.
    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    /// The settings of a server of this name, whose chain has an intermediate authority.
    pub(crate) fn server(&self, name: &str) -> Arc<rustls::ServerConfig> {
        self.issue(CertificateParams::new([name.to_owned()]).unwrap())
    }

    /// The same with a certificate whose time is over.
    pub(crate) fn expired(&self, name: &str) -> Arc<rustls::ServerConfig> {
        let mut leaf = CertificateParams::new([name.to_owned()]).unwrap();
        (leaf.not_before, leaf.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
        self.issue(leaf)
    }

    fn issue(&self, leaf: CertificateParams) -> Arc<rustls::ServerConfig> {
        let middle =
            CertifiedIssuer::signed_by(authority(), KeyPair::generate().unwrap(), &self.root).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = leaf.signed_by(&key, &middle).unwrap();
        let (chain, secret) = (self.dir.path().join("chain.pem"), self.dir.path().join("key.pem"));
        std::fs::write(&chain, leaf.pem() + &middle.pem()).unwrap();
        std::fs::write(&secret, key.serialize_pem()).unwrap();
        blindcore_tls::server(&chain, &secret).unwrap()
    }
}

fn authority() -> CertificateParams {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    // Each has a name of its own, or a signature would look forged and not merely unknown.
    let name = format!("authority {}", MADE.fetch_add(1, Ordering::Relaxed));
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}
