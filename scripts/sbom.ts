import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { foldersOf } from './licenses.ts';

/** The lockfile's entry for an installed package. */
interface Locked {
  readonly version: string;
  readonly license?: string;
  readonly integrity?: string;
}

/** A part of the package that others have made, in the form of CycloneDX 1.6. */
interface Component {
  readonly type: 'library' | 'data';
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly purl?: string;
  readonly licenses: readonly { license: { id: string } | { name: string } }[];
  readonly hashes?: readonly { alg: 'SHA-512'; content: string }[];
}

/** The parts of a bill that are read again. */
interface Bill {
  readonly metadata: { readonly component: Pick<Component, 'name' | 'version' | 'licenses'> & { type: string } };
  readonly components: readonly Component[];
}

/**
 * A bill of materials in CycloneDX's JSON: each package in the bundled files, with the hash of the packed file that npm
 * installed, and the parts of these files that come from no package. It has no time or serial number, so that the same
 * sources give the same text.
 */
export function sbomOf(files: readonly string[], root: string): string {
  const json = (path: string): unknown => JSON.parse(readFileSync(join(root, path), 'utf8'));
  const { packages } = json('package-lock.json') as { packages: Record<string, Locked> };
  const { name, version, license } = json('package.json') as { name: string; version: string; license: string };
  // In a checkout with linked packages, the folders are elsewhere.
  const placeOf = (folder: string) => folder.replace(/^.*?(?=node_modules\/)/, '');
  const all = [...foldersOf(files).map((folder) => packageAt(folder, packages[placeOf(folder)])), UNICODE];
  if (all.some((part) => part.name === 'better-sqlite3')) all.push(sqlite());
  // A package can be installed in several folders.
  const components = [...new Map(all.map((component) => [component['bom-ref'], component])).values()];
  return billOf({ type: 'application', name, version, licenses: licensesOf(license) }, components);
}

/** A bill with further packages, which are beside the bundled files. */
export function sbomWith(bom: string, folders: readonly string[], root: string): string {
  const [bill, added] = [bom, sbomOf(folders, root)].map((text) => JSON.parse(text) as Bill) as [Bill, Bill];
  const all = [...bill.components, ...added.components].map((part) => [part['bom-ref'], part] as const);
  return billOf(bill.metadata.component, [...new Map(all).values()]);
}

function billOf(
  { type, name, version, licenses }: Pick<Component, 'name' | 'version' | 'licenses'> & { type: string },
  components: readonly Component[],
): string {
  const own = purlOf(name, version);
  const bom = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type, 'bom-ref': own, name, version, purl: own, licenses } },
    components,
    dependencies: [{ ref: own, dependsOn: components.map((component) => component['bom-ref']) }],
  };
  return `${JSON.stringify(bom, null, 2)}\n`;
}

function packageAt(folder: string, locked: Locked | undefined): Component {
  const name = folder.replace(/^.*node_modules\//, '');
  const [, hash] = /^sha512-(\S+)$/.exec(locked?.integrity ?? '') ?? [];
  if (!locked?.license || hash === undefined)
    throw new Error(`The lockfile has no license or no hash of ${folder}, which is bundled.`);
  const purl = purlOf(name, locked.version);
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version: locked.version,
    purl,
    licenses: licensesOf(locked.license),
    hashes: [{ alg: 'SHA-512', content: Buffer.from(hash, 'base64').toString('hex') }],
  };
}

/** SQLite is part of its driver's binaries. */
function sqlite(): Component {
  const Database = createRequire(import.meta.url)('better-sqlite3') as typeof import('better-sqlite3');
  const driver = new Database(':memory:');
  const version = driver.prepare<[], string>('select sqlite_version()').pluck().get()!;
  driver.close();
  const purl = `pkg:generic/sqlite@${version}`;
  const licenses = [{ license: { id: 'blessing' } }];
  return { type: 'library', 'bom-ref': purl, name: 'sqlite', version, purl, licenses };
}

/** The source of `src/keys/key/confusables.ts`. */
const UNICODE: Component = {
  type: 'data',
  'bom-ref': 'unicode-confusables',
  name: 'confusables.txt of Unicode',
  version: '17.0.0',
  licenses: [{ license: { id: 'Unicode-3.0' } }],
};

function licensesOf(license: string): Component['licenses'] {
  return [{ license: /^[\w.+-]+$/.test(license) ? { id: license } : { name: license } }];
}

/** https://github.com/package-url/purl-spec */
function purlOf(name: string, version: string): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}
