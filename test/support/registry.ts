import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename } from 'node:path';

/** A registry on loopback that has the packages of packed files and no others. */
export interface Registry {
  url: string;
  stop(): void;
}

/** Starts a registry of packages, each of one version. */
export async function startRegistry(packed: readonly string[]): Promise<Registry> {
  const server = createServer(({ url: path = '' }, response) => {
    const answer = answers.get(decodeURIComponent(path));
    response.writeHead(answer === undefined ? 404 : 200).end(answer);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const answers = new Map<string, string | Buffer>(
    packed.flatMap((file) => {
      const content = readFileSync(file);
      const manifest = JSON.parse(
        execFileSync('tar', ['-xzOf', file, 'package/package.json'], { encoding: 'utf8' }),
      ) as { name: string; version: string };
      const { name, version } = manifest;
      const integrity = `sha512-${hash('sha512', content, 'base64')}`;
      const dist = { tarball: `${url}${basename(file)}`, integrity };
      const versions = { [version]: { ...manifest, dist } };
      const document = JSON.stringify({ name, 'dist-tags': { latest: version }, versions });
      return [
        [`/${name}`, document],
        [`/${basename(file)}`, content],
      ];
    }),
  );
  return {
    url,
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}
