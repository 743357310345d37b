//! Encrypted connections to a server that runs already, asked for in the words of each server's own
//! clients: `ssl-mode=VERIFY_CA&ssl-ca=FILE` for MySQL and MariaDB, `sslmode=verify-ca&sslrootcert=FILE`
//! for PostgreSQL.

mod verifier;

use rustls::{ClientConfig, RootCertStore, pki_types::pem::PemObject};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use strum::VariantArray;
use workload::Dialect;

/// An encrypted connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    verify: Verify,
    /// The certificates of those who may have issued the server's.
    authorities: Option<PathBuf>,
}

/// What is asked of the server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verify {
    /// Nothing: nobody can listen, but anybody could be the server.
    Nothing,
    /// That one of the authorities issued it.
    Issuer,
    /// That and that it is this host's.
    Identity,
}

/// What a URL can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
enum Mode {
    Disabled,
    Required,
    VerifyCa,
    VerifyIdentity,
}

impl Mode {
    /// The word of a server's own clients.
    fn word(self, dialect: Dialect) -> &'static str {
        match (dialect, self) {
            (Dialect::MySql, Mode::Disabled) => "DISABLED",
            (Dialect::MySql, Mode::Required) => "REQUIRED",
            (Dialect::MySql, Mode::VerifyCa) => "VERIFY_CA",
            (Dialect::MySql, Mode::VerifyIdentity) => "VERIFY_IDENTITY",
            (Dialect::PostgreSql, Mode::Disabled) => "disable",
            (Dialect::PostgreSql, Mode::Required) => "require",
            (Dialect::PostgreSql, Mode::VerifyCa) => "verify-ca",
            (Dialect::PostgreSql, Mode::VerifyIdentity) => "verify-full",
        }
    }
}

/// Why a URL's encryption cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum EncryptionError {
    /// The mode is none of those that are supported.
    #[error(
        "{parameter}={asked} is not supported: use one of {known} (whether a connection is encrypted \
         must not depend on the server, because it costs time that is measured)"
    )]
    Mode {
        /// `ssl-mode` or `sslmode`.
        parameter: &'static str,
        /// What was asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// A certificate is to be verified, and nobody is trusted.
    #[error("{mode} needs the file of an authority's certificates: add {parameter}=FILE")]
    NoAuthorities {
        /// What was asked for.
        mode: &'static str,
        /// `ssl-ca` or `sslrootcert`.
        parameter: &'static str,
    },
    /// The file of authorities cannot be used.
    #[error("the certificates in {} cannot be used", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Encryption {
    /// Takes what concerns encryption out of a URL; gives the rest, which the client library reads.
    pub fn take(url: &str, dialect: Dialect) -> Result<(String, Option<Self>), EncryptionError> {
        let (mode_parameter, file_parameter) = match dialect {
            Dialect::MySql => ("ssl-mode", "ssl-ca"),
            Dialect::PostgreSql => ("sslmode", "sslrootcert"),
        };
        let Some((base, query)) = url.split_once('?') else {
            return Ok((url.to_owned(), None));
        };
        let (mut mode, mut authorities, mut rest) = (None, None, Vec::new());
        for parameter in query.split('&') {
            match parameter.split_once('=') {
                Some((name, value)) if name == mode_parameter => mode = Some(value),
                Some((name, value)) if name == file_parameter => {
                    authorities = Some(PathBuf::from(value));
                }
                _ => rest.push(parameter),
            }
        }
        let rest = match rest.as_slice() {
            [] => base.to_owned(),
            rest => format!("{base}?{}", rest.join("&")),
        };
        let mode = match mode {
            None if authorities.is_some() => Mode::VerifyCa,
            None => Mode::Disabled,
            Some(asked) => *Mode::VARIANTS
                .iter()
                .find(|mode| mode.word(dialect).eq_ignore_ascii_case(asked))
                .ok_or_else(|| EncryptionError::Mode {
                    parameter: mode_parameter,
                    asked: asked.to_owned(),
                    known: Mode::VARIANTS
                        .iter()
                        .map(|mode| mode.word(dialect))
                        .collect::<Vec<_>>()
                        .join(", "),
                })?,
        };
        let verify = match mode {
            Mode::Disabled => return Ok((rest, None)),
            Mode::Required => Verify::Nothing,
            Mode::VerifyCa => Verify::Issuer,
            Mode::VerifyIdentity => Verify::Identity,
        };
        let encryption = Encryption { verify, authorities };
        match (&encryption.authorities, verify) {
            (None, Verify::Issuer | Verify::Identity) => Err(EncryptionError::NoAuthorities {
                mode: mode.word(dialect),
                parameter: file_parameter,
            }),
            (Some(path), _) => {
                roots(path)?;
                Ok((rest, Some(encryption)))
            }
            (None, Verify::Nothing) => Ok((rest, Some(encryption))),
        }
    }

    /// For the `mysql` crate, which also trusts the public authorities that it knows.
    pub(crate) fn mysql(&self) -> mysql::SslOpts {
        mysql::SslOpts::default()
            .with_root_cert_path(self.authorities.clone())
            .with_danger_accept_invalid_certs(self.verify == Verify::Nothing)
            .with_danger_skip_domain_validation(self.verify != Verify::Identity)
    }

    /// For the `postgres` crate.
    pub(crate) fn postgresql(
        &self,
    ) -> Result<tokio_postgres_rustls::MakeRustlsConnect, EncryptionError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|source| EncryptionError::Authorities {
                path: self.authorities.clone().unwrap_or_default(),
                source: source.into(),
            })?;
        let roots = match (&self.authorities, self.verify) {
            (Some(path), Verify::Issuer | Verify::Identity) => roots(path)?,
            _ => RootCertStore::empty(),
        };
        let config = match self.verify {
            Verify::Identity => builder.with_root_certificates(roots).with_no_client_auth(),
            Verify::Issuer | Verify::Nothing => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier::AnyHost::new(provider, roots)))
                .with_no_client_auth(),
        };
        Ok(tokio_postgres_rustls::MakeRustlsConnect::new(config))
    }
}

/// The certificates of a PEM file.
fn roots(path: &Path) -> Result<RootCertStore, EncryptionError> {
    let wrong = |source: Box<dyn std::error::Error + Send + Sync>| EncryptionError::Authorities {
        path: path.to_owned(),
        source,
    };
    let mut roots = RootCertStore::empty();
    let all = rustls::pki_types::CertificateDer::pem_file_iter(path)
        .map_err(|error| wrong(error.into()))?;
    for certificate in all {
        let certificate = certificate.map_err(|error| wrong(error.into()))?;
        roots.add(certificate).map_err(|error| wrong(error.into()))?;
    }
    match roots.is_empty() {
        true => Err(wrong("it holds no certificate in PEM format".into())),
        false => Ok(roots),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(url: &str, dialect: Dialect) -> (String, Option<Verify>) {
        let (rest, encryption) = Encryption::take(url, dialect).unwrap();
        (rest, encryption.map(|it| it.verify))
    }

    #[test]
    fn each_servers_own_words_are_understood_and_taken_out() {
        let plain = "mysql://u@h/db";
        assert_eq!(taken(plain, Dialect::MySql), (plain.to_owned(), None));
        let url = "mysql://u@h/db?ssl-mode=REQUIRED&compress=true";
        let rest = "mysql://u@h/db?compress=true".to_owned();
        assert_eq!(taken(url, Dialect::MySql), (rest, Some(Verify::Nothing)));
        let url = "postgresql://u@h/db?sslmode=require";
        let rest = "postgresql://u@h/db".to_owned();
        assert_eq!(taken(url, Dialect::PostgreSql), (rest, Some(Verify::Nothing)));
        let url = "postgresql://u@h/db?sslmode=disable&application_name=x";
        let rest = "postgresql://u@h/db?application_name=x".to_owned();
        assert_eq!(taken(url, Dialect::PostgreSql), (rest, None));
    }

    #[test]
    fn what_cannot_be_had_is_told_with_what_to_do() {
        let told = |url: &str, dialect| Encryption::take(url, dialect).unwrap_err().to_string();
        let text = told("mysql://u@h/db?ssl-mode=PREFERRED", Dialect::MySql);
        assert!(text.contains("DISABLED, REQUIRED, VERIFY_CA, VERIFY_IDENTITY"), "{text}");
        let text = told("postgresql://u@h/db?sslmode=verify-full", Dialect::PostgreSql);
        assert!(text.contains("verify-full needs") && text.contains("sslrootcert=FILE"), "{text}");
        let text = told("mysql://u@h/db?ssl-ca=/nowhere/ca.pem", Dialect::MySql);
        assert!(text.contains("/nowhere/ca.pem"), "{text}");
        let empty = tempfile::NamedTempFile::new().unwrap();
        let url = format!("postgresql://u@h/db?sslrootcert={}", empty.path().display());
        assert!(told(&url, Dialect::PostgreSql).contains("cannot be used"));
    }
}
