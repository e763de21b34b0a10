import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A cluster's answers to the requests that kubectl makes to patch the Secret "svc-api-keys". */
const ANSWERS: Record<string, object> = {
  '/version': { major: '1', minor: '32', gitVersion: 'v1.32.0' },
  '/api': { kind: 'APIVersions', versions: ['v1'] },
  '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [] },
  '/api/v1': {
    kind: 'APIResourceList',
    groupVersion: 'v1',
    resources: [{ name: 'secrets', singularName: 'secret', namespaced: true, kind: 'Secret', verbs: ['get', 'patch'] }],
  },
  '/api/v1/namespaces/default/secrets/svc-api-keys': {
    kind: 'Secret',
    apiVersion: 'v1',
    metadata: { name: 'svc-api-keys', namespace: 'default' },
  },
};

/** Just enough of a Kubernetes API for one Secret, on loopback. */
export class FakeCluster {
  /** The bodies of all patches of the Secret. */
  readonly patches: string[] = [];
  /** True to refuse changes of the Secret. */
  isDown = false;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer(async (request, response) => {
      const body: string[] = [];
      for await (const chunk of request) body.push(String(chunk));
      const answer = ANSWERS[request.url!.split('?')[0]!];
      const isPatch = request.method === 'PATCH';
      if (isPatch && !this.isDown) this.patches.push(body.join(''));
      const refusal = { kind: 'Status', apiVersion: 'v1', status: 'Failure', message: 'it is down', code: 503 };
      response.writeHead(isPatch && this.isDown ? 503 : answer ? 200 : 404, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(isPatch && this.isDown ? refusal : (answer ?? {})));
    });
  }

  static async start(): Promise<FakeCluster> {
    const cluster = new FakeCluster();
    cluster.#server.listen(0, '127.0.0.1');
    await once(cluster.#server, 'listening');
    return cluster;
  }

  /** The kubeconfig file. */
  get config(): string {
    const server = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'here', cluster: { server } }],
      contexts: [{ name: 'here', context: { cluster: 'here' } }],
      'current-context': 'here',
    });
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
