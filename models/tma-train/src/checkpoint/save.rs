//! Writes checkpoints.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

use super::tensors::TensorFile;
use super::{
    CONFIG, ChecksummedRecord, FileSum, MODEL, OPTIMIZER, Record, Storage, TOKENIZER, TRAINING, config_json,
    name_of,
};
use crate::error::TrainError;
use crate::steps::{State, StateTensor};

/// The contents of a checkpoint.
#[derive(Clone, Debug)]
pub struct Contents<'a> {
    /// The record, whose files are not filled in yet.
    pub record: Record,
    /// The state of the model and the optimiser.
    pub state: &'a State,
    /// The contents of `tokenizer.json`.
    pub tokenizer: &'a [u8],
    /// The last good checkpoint, for errors.
    pub kept: Option<&'a Path>,
}

/// An error of the file system, with the file or folder.
struct Failure {
    path: PathBuf,
    source: io::Error,
}

impl Failure {
    fn at(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self { path: path.into(), source }
    }
}

/// A file of a checkpoint before it is written.
enum Pending {
    Bytes(Vec<u8>),
    Tensors(TensorFile, Vec<u8>),
}

/// Writes a checkpoint, and returns its folder. If that fails, nothing is left of it.
///
/// # Errors
///
/// [`TrainError::NotFinite`] for a state that nobody could use, and [`TrainError::Checkpoint`].
pub fn save(
    storage: &mut impl Storage,
    output: &Path,
    contents: &Contents<'_>,
) -> Result<PathBuf, TrainError> {
    let step = contents.record.step;
    if let Some(name) = not_finite(contents.state) {
        return Err(TrainError::NotFinite { name, step, kept: contents.kept.map(Path::to_path_buf) });
    }
    let (folder, partial) = (output.join(name_of(step)), output.join(format!(".{}.partial", name_of(step))));
    let failed = |needed| {
        move |Failure { path, source }| {
            let kept = contents.kept.map(Path::to_path_buf);
            TrainError::Checkpoint { path, needed, kept, source }
        }
    };
    let (pending, needed) = pending(contents).map_err(Failure::at(&partial)).map_err(failed(0))?;
    let written = write_all(storage, &partial, contents, pending).and_then(|()| {
        storage.rename(&partial, &folder).map_err(Failure::at(&folder))?;
        sync_folder(storage, output)
    });
    written.map_err(|failure| {
        // The reason of the failure matters more than that of the removal, which is tried again when
        // the program starts.
        let _ = storage.remove(&partial);
        failed(needed)(failure)
    })?;
    Ok(folder)
}

/// Returns the name of the first tensor with a number that is not finite.
fn not_finite(state: &State) -> Option<String> {
    // Pieces are judged as a whole, which compilers turn into vector instructions.
    let is_piece_finite = |piece: &[f32]| piece.iter().fold(true, |all, x| all & x.is_finite());
    let is_finite = |numbers: &Vec<f32>| numbers.chunks(1024).all(is_piece_finite);
    let is_bad =
        |tensor: &&StateTensor| ![&tensor.master, &tensor.first, &tensor.second].into_iter().all(is_finite);
    state.tensors.iter().find(is_bad).map(|tensor| tensor.name.clone())
}

/// Returns the files to write, without that of the record, and the bytes that all of them need.
fn pending(contents: &Contents<'_>) -> io::Result<([(&'static str, Pending); 4], u64)> {
    let header = |file: TensorFile| file.header(contents.state).map_err(io::Error::other);
    let (model, of_model) = header(TensorFile::Model)?;
    let (optimizer, of_optimizer) = header(TensorFile::Optimizer)?;
    let config = config_json(&contents.record.settings.model);
    let record = serde_json::to_vec_pretty(&contents.record)?;
    let parts = [&model, &optimizer, &config, &record].map(Vec::len).iter().sum::<usize>();
    let needed = of_model + of_optimizer + (parts + contents.tokenizer.len()) as u64;
    let files = [
        (MODEL, Pending::Tensors(TensorFile::Model, model)),
        (OPTIMIZER, Pending::Tensors(TensorFile::Optimizer, optimizer)),
        (CONFIG, Pending::Bytes(config)),
        (TOKENIZER, Pending::Bytes(contents.tokenizer.to_vec())),
    ];
    Ok((files, needed))
}

/// Writes and syncs all files of a folder.
fn write_all(
    storage: &mut impl Storage,
    folder: &Path,
    contents: &Contents<'_>,
    pending: [(&'static str, Pending); 4],
) -> Result<(), Failure> {
    storage.create_folder(folder).map_err(Failure::at(folder))?;
    let mut record = contents.record.clone();
    for (name, pending) in pending {
        let path = folder.join(name);
        let written = write_file(storage, &path, &pending, contents.state).map_err(Failure::at(&path))?;
        record.files.push(FileSum { name: name.into(), ..written });
    }
    let path = folder.join(TRAINING);
    let checksummed = checksummed(&record).map_err(Failure::at(&path))?;
    write_file(storage, &path, &Pending::Bytes(checksummed), contents.state).map_err(Failure::at(&path))?;
    sync_folder(storage, folder)
}

/// Returns the contents of `training.json`.
fn checksummed(record: &Record) -> io::Result<Vec<u8>> {
    let text = RawValue::from_string(serde_json::to_string_pretty(record)?)?;
    let crc32 = crc32fast::hash(text.get().as_bytes());
    let mut json = serde_json::to_vec_pretty(&ChecksummedRecord { crc32, training: &text })?;
    json.push(b'\n');
    Ok(json)
}

/// Writes and syncs a file, and returns its size and checksum.
fn write_file(
    storage: &mut impl Storage,
    path: &Path,
    pending: &Pending,
    state: &State,
) -> io::Result<FileSum> {
    let mut file = storage.create(path)?;
    let (mut crc32, mut bytes) = (crc32fast::Hasher::new(), 0);
    let mut write = |piece: &[u8]| {
        crc32.update(piece);
        bytes += piece.len() as u64;
        storage.write(&mut file, piece)
    };
    match pending {
        Pending::Bytes(all) => write(all)?,
        Pending::Tensors(tensors, header) => {
            write(header)?;
            tensors.data(state, &mut write)?;
        }
    }
    storage.sync(&file, path)?;
    Ok(FileSum { name: String::new(), bytes, crc32: crc32.finalize() })
}

/// Syncs the names in a folder.
fn sync_folder(storage: &mut impl Storage, folder: &Path) -> Result<(), Failure> {
    // Only Unix opens folders as files; elsewhere, a rename is all there is.
    if cfg!(unix) {
        let file = File::open(folder).map_err(Failure::at(folder))?;
        storage.sync(&file, folder).map_err(Failure::at(folder))?;
    }
    Ok(())
}
