//! The program fio as an engine.
use crate::{Live, LoadError, LoadSpec};
use record::Measurement;
use std::sync::atomic::AtomicBool;

pub(crate) fn run(
    _: &LoadSpec,
    _: &AtomicBool,
    _: &mut dyn FnMut(&Live),
) -> Result<Measurement, LoadError> {
    Err(LoadError::NoFio)
}
