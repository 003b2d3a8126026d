// What datasets do with whole samples. Internal to data.
#pragma once
#include <binade/data/sample.h>

namespace binade::data {

// A copy that shares no memory: whoever changes it changes nobody else's.
Sample copy_of(const Sample& sample);
Sample copy_without_image(const Sample& sample);
// "0", "1", ...: the names of classes that have none. None if there are more than 65536.
std::vector<std::string> numbered_class_names(int64_t classes);
// A hash of pixels, values, fields and masks; not of the label.
uint64_t content_hash(const Sample& sample);

}  // namespace binade::data
