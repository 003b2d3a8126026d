extern "C" void reference(const double* x, double* y, long long channels, long long height,
                          long long width) {
  for (long long c = 0, i = 0; c < channels; ++c)
    for (int dr = -1; dr <= 1; ++dr)
      for (int dc = -1; dc <= 1; ++dc)
        for (long long r = 0; r < height; ++r)
          for (long long col = 0; col < width; ++col, ++i) {
            const bool inside = r + dr >= 0 && r + dr < height && col + dc >= 0 && col + dc < width;
            y[i] = inside ? x[(c * height + r + dr) * width + col + dc] : 0;
          }
}
