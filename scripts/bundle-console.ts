import { copyFileSync, existsSync } from 'node:fs';
import { build } from 'esbuild';

/**
 * Puts the script, the style sheet and the icon of the console into `dist/console`, for browsers.
 * @returns their source files, none in a tree without the console
 */
export async function bundleConsole(root: string): Promise<string[]> {
  if (!existsSync(`${root}src/features/console`)) return [];
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [
      { in: 'src/features/console/islands/main.ts', out: 'console' },
      { in: 'src/features/console/style.css', out: 'console' },
    ],
    outdir: 'dist/console',
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: ['es2023', 'chrome120', 'firefox121', 'safari17'],
    jsx: 'automatic',
    jsxImportSource: 'hono/jsx/dom',
    legalComments: 'none',
    metafile: true,
    tsconfigRaw: {},
  });
  copyFileSync(`${root}src/features/console/icon.svg`, `${root}dist/console/console.svg`);
  return Object.keys(metafile.inputs);
}
