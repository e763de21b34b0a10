import { readFileSync } from 'node:fs';
import { createRequire, registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);

/** Lets Node run sources with JSX directly: it strips types, but does not compile JSX. */
registerHooks({
  load(url, context, nextLoad) {
    if (!url.endsWith('.tsx')) return nextLoad(url, context);
    const { transformSync } = require('esbuild') as typeof import('esbuild');
    const { code } = transformSync(readFileSync(fileURLToPath(url), 'utf8'), {
      loader: 'tsx',
      jsx: 'automatic',
      jsxImportSource: 'hono/jsx',
      sourcemap: 'inline',
      sourcefile: url,
    });
    return { format: 'module', source: code, shortCircuit: true };
  },
});
