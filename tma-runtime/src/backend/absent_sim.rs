//! The simulator backend of a build without the feature `ptx-sim`: the same names, with uninhabited
//! types.

use std::sync::Arc;

use crate::backend::properties::Properties;
use crate::binding::Argument;
use crate::binding::shape::Shape;
use crate::error::Error;
use crate::layout::DeviceId;
use crate::map::{Descriptor, MapParams};
use crate::spec::KernelSpec;

#[derive(Debug)]
pub(crate) enum Context {}

#[derive(Debug)]
pub(crate) enum Launch {}

impl Context {
    pub(crate) fn open() -> Result<Arc<Self>, Error> {
        Err(Error::NoSimulator)
    }

    pub(crate) fn team(_ranks: usize) -> Result<Vec<Arc<Self>>, Error> {
        Err(Error::NoSimulator)
    }

    pub(crate) fn team_alike(&self, _ranks: usize) -> Vec<Arc<Self>> {
        match *self {}
    }

    pub(crate) fn instructions(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn id(&self) -> DeviceId {
        match *self {}
    }

    pub(crate) fn properties(&self) -> &Properties {
        match *self {}
    }

    pub(crate) fn allocate(&self, _bytes: u64) -> Result<u64, Error> {
        match *self {}
    }

    pub(crate) fn free(&self, _address: u64) {
        match *self {}
    }

    pub(crate) fn encode(&self, _params: &MapParams) -> Descriptor {
        match *self {}
    }

    pub(crate) fn reachable(&self, _address: u64, _bytes: u64) -> Result<u64, Error> {
        match *self {}
    }

    pub(crate) fn write(&self, _address: u64, _bytes: &[u8]) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn read(&self, _address: u64, _bytes: &mut [u8]) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn copy(&self, _to: u64, _from: u64, _bytes: u64) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn fill(&self, _to: u64, _byte: u8, _bytes: u64) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn prepare(
        &self,
        _spec: &'static KernelSpec,
        _shape: Shape,
        _args: &[impl AsRef<Argument>],
    ) -> Result<Launch, Error> {
        match *self {}
    }

    pub(crate) fn run_team(&self, _launches: &[Launch]) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn run(&self, launch: &Launch) -> Result<(), Error> {
        match *launch {}
    }
}
