// A cache of listings: a file with the entries of folders, so that a folder of millions of images
// is not listed anew at every start.
//
//   data::ImageFolder photos("photos", data::Part::train, {.listing_cache = {"photos.listing"}});
//
// A folder is listed anew if its inode, its size, its number of links or one of its times (of
// changed entries, of anything changed; in nanoseconds) differs from the stamp in the file. Every
// change of an entry sets these times, and a program cannot set the second one back. Links, FIFOs
// and other odd entries are looked at in every run. So datasets, warnings and errors are the same
// as without a cache.
//
// A folder is not kept
// - if it changed less than settled_seconds before: a second change in the same tick of the clock
//   would not change its times;
// - if its file system is not known to set the times, which is a warning (core/io/file_system.h);
// - if its names have more than 256 MiB. All new names of a run may have 1 GiB.
//
// The file has a version and checksums (CRC-32C). One that is damaged or of another version is a
// warning; the folders are listed anew and it is replaced. One that is no listing cache, or a link,
// is a warning and stays as it is. If the file cannot be written, that is a warning. Processes may
// use one file at once: each replaces it as a whole, and the last one wins. Of the file, a reader
// has the table of folders and the names of one folder in memory.
//
// As with checksum manifests, whoever can write the file can choose the names in it; they never
// lead out of their folder.
#pragma once
#include <string>

namespace binade::data {

struct ListingCacheOptions {
  // The file; empty: no cache. It must be outside of the listed folder, whose time it would change.
  // Several data sets may share one.
  std::string file = {};
  // More than the clocks of the file systems of the folder and of the file may differ.
  double settled_seconds = 60;
};

}  // namespace binade::data
