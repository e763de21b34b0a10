import { defineErrors } from '../../keys/basics/index.ts';

/** Error codes of installing plugins. */
export const errors = defineErrors({
  PLUGIN_FAILED: {
    meaning: 'A plugin could not be installed or uninstalled.',
    causes: [
      'npm is not installed',
      'npm failed. Its output on stderr says why',
      'the path does not exist',
      'the package is not an oclif plugin',
      'the `package.json` in the data folder cannot be read or written',
    ],
    remedy: 'Check the name or the path. See [Plugins](plugins.md).',
  },
});
