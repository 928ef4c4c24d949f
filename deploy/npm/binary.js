// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// The program is in a package of its own for each platform, of which npm installs the one that fits.
"use strict";

const name = `@sallyport-dev/sallyport-${process.platform}-${process.arch}`;

// find returns the path of the program.
exports.find = () => {
  try {
    return require.resolve(`${name}/bin/sallyport`);
  } catch {
    throw new Error(
      `the package ${name} is not installed: npm has left out optional dependencies ` +
        `(install again without --no-optional and --omit=optional), or there is none for this platform`,
    );
  }
};
