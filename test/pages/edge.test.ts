import assert from 'node:assert/strict';
import { blocksOf, blockWith, pathWithCli, runBlock } from '../support/pages.ts';
import { freePort } from '../support/port.ts';
import { tempFolder, tempStore } from '../support/temp.ts';

const PAGE = 'docs/edge.md';

describe(PAGE, () => {
  it('begins with an edge that lists itself, and accepts what its origin does until that is deleted', async () => {
    const folder = tempFolder();
    const [origin, edge] = [await freePort(), await freePort()];
    const asked = `curl --silent --output /dev/null --write-out '%{http_code} ' --header @key \\
      --header 'X-Forwarded-Method: GET' --header 'X-Forwarded-Host: a.example.org' --header 'X-Forwarded-Proto: https' \\
      --header 'X-Forwarded-Uri: /' 'http://127.0.0.1:4100/auth/traefik?permission=INFO:READ_ANY'`;
    const typed = [
      'trap "kill %1 %2" EXIT',
      blocksOf(PAGE)[0]!.replace('svc-api serve &', `svc-api serve --port ${origin} &`),
      'while kill -0 %2 && ! curl --silent --fail --output /dev/null http://127.0.0.1:4100/readyz; do :; done',
      'echo "Authorization: Bearer $(svc-api apikey --create --name CI --roles VIEWER)" > key',
      asked,
      'svc-api apikey --delete --name CI > deleted',
      asked,
      blockWith('svc-api doctor', PAGE),
    ].join('\n');
    const here = typed
      .replaceAll(':4000', `:${origin}`)
      .replaceAll(':4100', `:${edge}`)
      .replace('--token-file edge.key &', `--token-file edge.key --port ${edge} > edge.log &`);
    const env = { PATH: pathWithCli(folder), SVC_API_DATABASE: tempStore() };
    const { stdout, stderr, code } = await runBlock(here, folder, env);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^Listening on .*\n200 401 .* answering: "[^"]+" at 127\.0\.0\.1, with the key "Edge 1", /s);
  });
});
