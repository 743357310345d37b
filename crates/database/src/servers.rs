//! The servers: one file each.

pub mod mariadb;
pub mod postgresql;
pub mod url;
