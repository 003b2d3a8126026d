// TensorBoard: event files that TensorBoard shows: tensorboard --logdir RUN
//
// Scalars are in f32, as TensorBoard has them. A histogram has TensorFlow's exponential buckets (10
// percent wide); elements that are NaN or infinite are left out of it and counted by the scalar
// TAG/not_finite. Images are PNG. Texts are Markdown.
//
// Every start() begins a new file in the folder. Its first event says from which step on the
// earlier files are void. A record that a crash has cut is the last one of its file; a reader stops
// there.
#pragma once
#include <binade/core/owned.h>
#include <binade/train/logging/logger.h>

namespace binade::train {

struct TensorBoardOptions {
  std::string folder = "tensorboard";  // a relative path is in the run directory
};

class TensorBoard : public Logger {
 public:
  explicit TensorBoard(TensorBoardOptions options = {});
  ~TensorBoard() override;
  TensorBoard(TensorBoard&&) noexcept;
  TensorBoard& operator=(TensorBoard&&) noexcept;

 private:
  void open(const LogStart& start) override;
  void write(const ScalarRecord& record) override;
  void write_histogram(int64_t step, const std::string& tag, const Tensor& x) override;
  void write_image(int64_t step, const std::string& tag, const data::Image& image) override;
  void write_text(int64_t step, const std::string& tag, const std::string& text) override;
  void close() override;

  class Events;
  TensorBoardOptions options_;
  Owned<Events> events_;
};

}  // namespace binade::train
