//! The CUDA backend of a build without the feature `cuda`: the same names, with uninhabited types.
//!
//! This keeps every `match` over backends exhaustive in every build.

use crate::backend::properties::Properties;
use crate::binding::Argument;
use crate::binding::shape::Shape;
use crate::error::Error;
use crate::layout::DeviceId;
use crate::map::{Descriptor, MapParams};
use crate::spec::KernelSpec;
use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub(crate) enum Context {}

#[derive(Debug)]
pub(crate) enum Stream {}

#[derive(Debug)]
pub(crate) enum Event {}

#[derive(Debug)]
pub(crate) enum Capture {}

#[derive(Debug)]
pub(crate) enum Graph {}

#[derive(Debug)]
pub(crate) enum Prepared {}

impl Context {
    pub(crate) fn open(_ordinal: u32) -> Result<&'static Self, Error> {
        Err(Error::NoBackend)
    }

    pub(crate) unsafe fn adopt(_raw: *mut c_void) -> Result<&'static Self, Error> {
        Err(Error::NoBackend)
    }

    pub(crate) fn count() -> Result<u32, Error> {
        Err(Error::NoBackend)
    }

    pub(crate) fn enable_peer(&self, _peer: &Self) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn id(&self) -> DeviceId {
        match *self {}
    }

    pub(crate) fn raw(&self) -> *mut c_void {
        match *self {}
    }

    pub(crate) fn properties(&self) -> &Properties {
        match *self {}
    }

    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn allocate(&self, _bytes: u64) -> Result<u64, Error> {
        match *self {}
    }

    pub(crate) fn free(&self, _address: u64) {
        match *self {}
    }

    pub(crate) unsafe fn copy_to_device(&self, _to: u64, _from: *const u8, _bytes: u64) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) unsafe fn copy_to_host(&self, _to: *mut u8, _from: u64, _bytes: u64) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) unsafe fn fill(&self, _to: u64, _byte: u8, _bytes: u64) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn reachable(&self, _address: u64, _bytes: u64) -> Result<u64, Error> {
        match *self {}
    }

    pub(crate) fn encode(&self, _tensor: &'static str, _params: &MapParams) -> Result<Descriptor, Error> {
        match *self {}
    }

    pub(crate) fn stream(&'static self) -> Result<Stream, Error> {
        match *self {}
    }

    pub(crate) fn capture(&'static self) -> Result<Capture, Error> {
        match *self {}
    }

    pub(crate) fn watched(
        &self,
        _original: &'static KernelSpec,
        _limit: Duration,
    ) -> Result<&'static KernelSpec, Error> {
        match *self {}
    }

    pub(crate) fn resident_blocks(
        &self,
        _spec: &'static KernelSpec,
        _cluster: [u32; 3],
    ) -> Result<u32, Error> {
        match *self {}
    }

    pub(crate) fn launch(
        &self,
        _stream: Option<&Stream>,
        _spec: &'static KernelSpec,
        _shape: Shape,
        _args: &[impl AsRef<Argument>],
    ) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn prepare(
        &'static self,
        _spec: &'static KernelSpec,
        _shape: Shape,
        _args: &[impl AsRef<Argument>],
    ) -> Result<Prepared, Error> {
        match *self {}
    }

    pub(crate) fn launch_prepared(
        &self,
        _stream: Option<&Stream>,
        _launches: &[Arc<Prepared>],
    ) -> Result<(), Error> {
        match *self {}
    }
}

impl Stream {
    pub(crate) unsafe fn adopt(context: &'static Context, _raw: *mut c_void) -> Result<Self, Error> {
        match *context {}
    }

    pub(crate) fn raw(&self) -> *mut c_void {
        match *self {}
    }

    pub(crate) fn is_capturing(&self) -> Result<bool, Error> {
        match *self {}
    }

    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn record(&self) -> Result<Event, Error> {
        match *self {}
    }

    pub(crate) fn wait_for(&self, _other: &Self) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) unsafe fn copy_on_device(&self, _to: u64, _from: u64, _bytes: u64) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) unsafe fn fill(&self, _to: u64, _byte: u8, _bytes: u64) -> Result<(), Error> {
        match *self {}
    }
}

impl Event {
    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn elapsed_ms(&self, _later: &Self) -> Result<f32, Error> {
        match *self {}
    }
}

impl Capture {
    pub(crate) fn launch(
        &self,
        _spec: &'static KernelSpec,
        _shape: Shape,
        _args: &[impl AsRef<Argument>],
    ) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn launch_prepared(&self, _launches: &[Arc<Prepared>]) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn finish(self) -> Result<Graph, Error> {
        match self {}
    }
}

impl Graph {
    pub(crate) fn launch(&self, _stream: &Stream) -> Result<(), Error> {
        match *self {}
    }
}
