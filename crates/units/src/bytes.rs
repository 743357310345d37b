//! Sizes: bytes, and the 512-byte sectors that the kernel counts in.

use crate::{ParseError, number_and_unit, whole};
use serde::{Deserialize, Serialize};
use std::{fmt, ops, str::FromStr};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A number of 512-byte sectors, or the address of one: the kernel's unit, whatever a device's own
/// block size is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Sectors(pub u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Bytes = Bytes(0);
    /// From kibibytes.
    pub const fn from_kib(kib: u64) -> Self {
        Bytes(kib << 10)
    }
    /// From mebibytes.
    pub const fn from_mib(mib: u64) -> Self {
        Bytes(mib << 20)
    }
    /// From gibibytes.
    pub const fn from_gib(gib: u64) -> Self {
        Bytes(gib << 30)
    }
    /// Whole sectors; what is left over is dropped.
    pub const fn sectors(self) -> Sectors {
        Sectors(self.0 / 512)
    }
}

impl Sectors {
    /// As bytes.
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0 * 512)
    }
}

impl ops::Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}
impl ops::Mul<u64> for Bytes {
    type Output = Bytes;
    fn mul(self, times: u64) -> Bytes {
        Bytes(self.0 * times)
    }
}

/// Binary multiples, exact where they can be: `4 KiB`, `1.5 GiB`, `512 B`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        let text = units
            .iter()
            .find(|(shift, _)| self.0 >= 1 << shift)
            .map(|(shift, unit)| {
                let value = self.0 as f64 / (1u64 << shift) as f64;
                match value {
                    v if v == v.trunc() => format!("{v:.0} {unit}"),
                    v if v < 10.0 => format!("{v:.2} {unit}"),
                    v if v < 100.0 => format!("{v:.1} {unit}"),
                    v => format!("{v:.0} {unit}"),
                }
            })
            .unwrap_or_else(|| format!("{} B", self.0));
        f.pad(&text)
    }
}

const WHAT: &str = "a size";
const EXAMPLE: &str = "4k, 16KiB, 10G or 146 GB";

impl FromStr for Bytes {
    type Err = ParseError;

    /// `512`, `512B`, `4k`, `4KiB`, `10G` are binary, as in fio; `kB`, `MB`, `GB`, `TB` are decimal,
    /// as on a drive's label; `s` counts 512-byte sectors.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (number, unit) = number_and_unit(text, WHAT, EXAMPLE)?;
        let scale = match unit {
            "" | "B" | "b" => 1.0,
            "k" | "K" | "KiB" | "kiB" | "kib" => 1024.0,
            "m" | "M" | "MiB" | "mib" => 1048576.0,
            "g" | "G" | "GiB" | "gib" => 1073741824.0,
            "t" | "T" | "TiB" | "tib" => 1099511627776.0,
            "kB" | "KB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            "TB" => 1e12,
            "s" => 512.0,
            other => {
                return Err(ParseError::UnknownUnit {
                    text: text.to_owned(),
                    unit: other.to_owned(),
                    what: WHAT,
                    example: EXAMPLE,
                });
            }
        };
        whole(text, number, scale, WHAT).map(Bytes)
    }
}

/// As whole bytes in records.
impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

/// A number is bytes; text carries its unit.
impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                write!(f, "{WHAT} such as {EXAMPLE}")
            }
            fn visit_u64<E>(self, value: u64) -> Result<Bytes, E> {
                Ok(Bytes(value))
            }
            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Bytes, E> {
                u64::try_from(value)
                    .map(Bytes)
                    .map_err(|_| E::custom(format!("{value} is out of range for {WHAT}")))
            }
            fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Bytes, E> {
                value.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_binary_and_labels_are_decimal() {
        for (text, bytes) in [
            ("4k", 4096),
            ("4KiB", 4096),
            ("4kB", 4000),
            ("146 GB", 146_000_000_000),
            ("1.5G", 1_610_612_736),
            ("8s", 4096),
            ("512", 512),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        assert!("4 furlongs".parse::<Bytes>().is_err());
        assert!("many".parse::<Bytes>().is_err());
        assert!("99999999999T".parse::<Bytes>().is_err());
    }

    #[test]
    fn prints_binary_multiples() {
        assert_eq!(Bytes(4096).to_string(), "4 KiB");
        assert_eq!(Bytes(1_610_612_736).to_string(), "1.50 GiB");
        assert_eq!(Bytes(512).to_string(), "512 B");
    }
}
