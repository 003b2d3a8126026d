// Functions on whole samples, for datasets. Internal to data.
#pragma once
#include <binade/data/sample.h>

namespace binade::data {

// A copy that shares no memory with the sample.
Sample copy_of(const Sample& sample);
Sample copy_without_image(const Sample& sample);
// Makes fields of the boxes (Sample::boxes).
void move_boxes_to_fields(Sample& sample);
// "0", "1", ...: names for classes without names. Empty if there are more than 65536 classes.
std::vector<std::string> numbered_class_names(int64_t classes);
// A hash of pixels, values, fields and masks; not of the label.
uint64_t content_hash(const Sample& sample);

}  // namespace binade::data
