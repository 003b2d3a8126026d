// An append to several stores in the folders of one folder, such as FOLDER/train and FOLDER/test,
// that takes effect in all of them at once. Internal to data.
//
// Each store has its new manifest ready under a temporary name. Then FOLDER/binade-append.txt is
// written, in one step, with these names: from that moment on they are the manifests, whether or
// not they have been renamed yet. A process that is killed before it leaves all stores as they
// were, and one that is killed after it has appended to all.
#pragma once
#include <binade/data/store/store_format_internal.h>

#include <string>
#include <vector>

namespace binade::data {

inline constexpr char kJointAppend[] = "binade-append.txt";

// `manifests`: "train/binade-store.txt.TOKEN.tmp", ...: paths from the folder. Durable.
void write_joint_append(const std::string& folder, const std::vector<std::string>& manifests);
// Call it when all manifests have been renamed.
void remove_joint_append(const std::string& folder);
// The path of the manifest of a store: the one that a joint append has made its own and that waits
// for its name, or STORE/binade-store.txt. Throws Error if the file of the append was altered.
std::string manifest_path(const std::string& store);
StoreManifest read_store_manifest(const std::string& store);  // from there

}  // namespace binade::data
