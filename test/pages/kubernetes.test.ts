import assert from 'node:assert/strict';
import { chmodSync, chownSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { mustRun } from '../support/host.ts';
import { finished, ROOT, startCli } from '../support/process.ts';
import { NOBODY, serviceMachine } from '../support/service-machine.ts';
import { needsRoot } from '../support/skip.ts';
import { tempFolder, tempStore } from '../support/temp.ts';

interface Probe {
  httpGet: { path: string; port: string };
}

interface Workload {
  spec: {
    replicas?: number;
    selector: { matchLabels: object };
    template: {
      metadata: { labels: object; annotations: Record<string, string> };
      spec: {
        enableServiceLinks: boolean;
        automountServiceAccountToken: boolean;
        terminationGracePeriodSeconds: number;
        securityContext: object;
        containers: {
          env: { name: string; value?: string }[];
          lifecycle: { preStop: { sleep: { seconds: number } } };
          securityContext: object;
          startupProbe?: Probe;
          readinessProbe: Probe;
          livenessProbe: Probe;
          volumeMounts: { name: string; mountPath: string }[];
          resources: object;
          ports: { name: string; containerPort: number }[];
        }[];
        volumes: { name: string }[];
      };
    };
    volumeClaimTemplates?: { metadata: { name: string } }[];
  };
}

/** How long the server waits for requests in flight. */
const GRACE_S = 10;

/** The other objects of each file besides a Service and a NetworkPolicy, the replicas, and the Service's port. */
const FILES = {
  'postgres.yaml': { only: ['apps/v1 Deployment', 'policy/v1 PodDisruptionBudget'], replicas: 2, port: 4000 },
  'sqlite.yaml': { only: ['apps/v1 StatefulSet'], replicas: 1, port: 4000 },
  'edge.yaml': { only: ['apps/v1 DaemonSet'], replicas: undefined, port: 4100 },
};

for (const [file, { only, replicas, port: served }] of Object.entries(FILES)) {
  const path = join(ROOT, 'examples/kubernetes', file);
  const documents = parseAllDocuments(readFileSync(path, 'utf8')).map((document) => document.toJS() as Manifest);
  interface Manifest {
    kind: string;
    apiVersion: string;
    spec: { selector?: object; podSelector?: object; ports?: object[]; ingress?: object[] };
  }
  const { spec } = documents[0] as unknown as Workload;
  const pod = spec.template.spec;
  const container = pod.containers[0]!;

  describe(`examples/kubernetes/${file}`, () => {
    it('has objects that belong together', () => {
      const kinds = documents.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`);
      const both = ['v1 Service', 'networking.k8s.io/v1 NetworkPolicy'];
      assert.deepEqual(kinds.toSorted(), [...only, ...both].toSorted());
      const labels = spec.template.metadata.labels;
      for (const { kind, spec: at } of documents) {
        const selector = (at.selector ?? at.podSelector) as { matchLabels?: object };
        assert.deepEqual(selector.matchLabels ?? selector, labels, kind);
      }
      const volumes = [...pod.volumes, ...(spec.volumeClaimTemplates?.map(({ metadata }) => metadata) ?? [])];
      assert.deepEqual(
        container.volumeMounts.map(({ name }) => name).toSorted(),
        volumes.map(({ name }) => name).toSorted(),
      );
    });

    it('lets a pod do no more than the restricted standard, and write nothing but its volumes', () => {
      const { fsGroup, fsGroupChangePolicy, ...user } = pod.securityContext as Record<string, unknown>;
      assert.deepEqual([fsGroup, fsGroupChangePolicy], [65_532, file === 'sqlite.yaml' ? 'OnRootMismatch' : undefined]);
      assert.deepEqual(user, {
        runAsNonRoot: true,
        runAsUser: 65_532,
        runAsGroup: 65_532,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      assert.deepEqual(container.securityContext, {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      assert.equal(pod.automountServiceAccountToken, false);
    });

    it('has its probes at endpoints that exist, and waits for requests in flight', () => {
      assert.deepEqual(
        [container.startupProbe, container.readinessProbe, container.livenessProbe].map((probe) => probe?.httpGet.path),
        // An edge listens before it has loaded all keys.
        [file === 'edge.yaml' ? undefined : '/readyz', '/readyz', '/healthz'],
      );
      const { seconds } = container.lifecycle.preStop.sleep;
      assert.ok(pod.terminationGracePeriodSeconds > seconds + GRACE_S);
      assert.equal(spec.replicas, replicas);
    });

    it('lets only Prometheus scrape each pod at a port of its own', () => {
      const { port } = container.ports
        .map(({ name, containerPort }) => ({ name, port: String(containerPort) }))
        .find(({ name }) => name === 'metrics')!;
      const env = new Map(container.env.map(({ name, value }) => [name, value]));
      assert.deepEqual([env.get('SVC_API_METRICS_PORT'), env.get('SVC_API_METRICS_HOST')], [port, '::']);
      assert.deepEqual(spec.template.metadata.annotations, {
        'prometheus.io/scrape': 'true',
        'prometheus.io/port': port,
        'prometheus.io/path': '/metrics',
      });
      const named = (wanted: string) => documents.find(({ kind }) => kind === wanted)!.spec;
      assert.deepEqual(named('Service').ports, [{ name: 'http', port: served, targetPort: 'http' }]);
      const from = (namespace: string) => [
        { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } },
      ];
      assert.deepEqual(named('NetworkPolicy').ingress, [
        { from: from('ingress-nginx'), ports: [{ port: 'http' }] },
        { from: from('monitoring'), ports: [{ port: 'metrics' }] },
      ]);
    });

    it('has no field that Kubernetes does not know', async () => {
      const folder = tempFolder();
      symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
      writeFileSync(join(folder, 'objects.ts'), documents.map(typed).join('\n'));
      const options = '--noEmit --strict --ignoreConfig --module esnext --moduleResolution bundler --types'.split(' ');
      const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
      await mustRun(process.execPath, [tsc, ...options, '', 'objects.ts'], { cwd: folder });
    });
  });
}

describe('svc-api in Kubernetes', () => {
  it('does not start by the variable that is set for a Service of its name: the manifests turn that off', async () => {
    const env = { SVC_API_DATABASE: tempStore(), SVC_API_PORT: 'tcp://10.0.0.1:4000' };
    const { code, stderr } = await finished(startCli(['serve'], { env }));
    assert.deepEqual([code, /SVC_API_PORT is "tcp:/.test(stderr)], [2, true]);
    for (const file of ['postgres.yaml', 'sqlite.yaml'])
      assert.match(readFileSync(join(ROOT, 'examples/kubernetes', file), 'utf8'), /^ +enableServiceLinks: false$/m);
  });

  it('keeps its store in a folder of its own in a volume that its group may write', async function () {
    needsRoot(this);
    const { run: runHere, store } = serviceMachine();
    // As fsGroup sets it.
    chownSync(store, 0, NOBODY);
    chmodSync(store, 0o2775);
    const command = (rest: string) =>
      runHere(`runuser -u svc-api -- env SVC_API_DATABASE=${store}/store/keys.sqlite svc-api apikey ${rest}`);
    const created = await command('create --name A --roles GUEST');
    assert.equal(created.code, 0, created.stderr);
    assert.match((await command('list')).stdout, /^A\tACTIVE\t/);
    assert.equal(statSync(join(store, 'store')).mode & 0o777, 0o700);
    // As a mount without OnRootMismatch sets it.
    chmodSync(join(store, 'store'), 0o2770);
    chmodSync(join(store, 'store/keys.sqlite'), 0o660);
    assert.match((await command('list')).stderr, /Code: STORE_INSECURE/);
  });
});

/** TypeScript that checks an object against Kubernetes' type, and checks that the type rejects an unknown field. */
function typed(object: { apiVersion: string; kind: string }, index: number): string {
  const { apiVersion, kind } = object;
  const group = apiVersion === 'v1' ? 'core/v1' : apiVersion.replace('.k8s.io', '');
  const type = `import('kubernetes-types/${group}').${kind}`;
  const text = JSON.stringify(object);
  return `export const object${index}: ${type} = ${text};
// @ts-expect-error
export const wrong${index}: ${type} = ${text.replace('"labels"', '"label"')};
`;
}
