import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { BaseCommand, examplesOf } from '../../../../cli/base-command.ts';
import { CliError } from '../../../../cli/errors.ts';
import { hostVocabulary } from '../../../../cli/host.ts';
import { commandText } from '../../../../cli/output.ts';
import { formatList, printable, suggestion } from '../../../../keys/basics/index.ts';
import { createCatalog, invalidResource } from '../../../../keys/permissions/index.ts';

export default class Proxy extends BaseCommand {
  static override group = 'Servers';
  static override isAtTop = true;
  static override summary = 'Print the configuration of a proxy that requires API keys for a service.';
  static override description =
    'Writes the configuration to stdout, and the remaining steps to stderr. Caddy, nginx, Traefik, HAProxy and Envoy ' +
    'ask the server that "serve" starts on this machine. Apache passes requests to "guard". If svc-api.yaml allows keys ' +
    'in other headers, the configuration removes them from requests to the service.';
  static override examples = examplesOf([
    [
      'Let Caddy require keys for a wiki',
      'caddy --resource WIKI --upstream http://127.0.0.1:3000 --domain wiki.example.org',
    ],
    ['The same for nginx', 'nginx --resource WIKI --upstream http://10.0.0.7:3000'],
    [
      'Let the routes of svc-api.yaml decide which permission a request needs',
      'nginx --routes --upstream http://10.0.0.7:3000 --domain wiki.example.org',
    ],
  ]);
  static override args = {
    proxy: Args.string({
      description: 'The proxy: caddy, nginx, traefik, haproxy, apache or envoy.',
      required: true,
      ignoreStdin: true,
    }),
  };
  static override flags = {
    resource: Flags.string({
      description: 'Resource that requests need permissions for: READ_ANY to read, CREATE_ANY to POST, and so on.',
      helpValue: '<resource>',
      exactlyOne: ['resource', 'routes'],
    }),
    routes: Flags.boolean({
      description: 'Let the routes of svc-api.yaml decide which permission a request needs.',
      dependsOn: ['domain'],
    }),
    upstream: Flags.string({
      description: 'Address of the service.',
      helpValue: '<url>',
      required: true,
    }),
    domain: Flags.string({
      description: 'Domain that clients use. Default: <resource>.example.org. Required with --routes.',
      helpValue: '<name>',
    }),
  };

  async run(): Promise<object> {
    const { args, flags } = await this.parse(Proxy);
    const { PROXY_NAMES, proxyConfiguration } = await import('../../cli/proxy-configurations.ts');
    const name = PROXY_NAMES.find((each) => each === args.proxy);
    if (name === undefined) {
      const there = `${suggestion(args.proxy, PROXY_NAMES)}The proxies are ${formatList(PROXY_NAMES)}.`;
      throw new CliError('USAGE', `There is no example for "${printable(args.proxy)}". ${there}`);
    }
    const { parseHostPattern, parseUpstream } = await import('../../../routes/index.ts');
    const resource = flags.resource?.trim().toUpperCase();
    const invalid = resource === undefined ? undefined : invalidResource({ name: resource });
    if (invalid !== undefined) throw new CliError('USAGE', invalid);
    const host = parseHostPattern(flags.domain ?? `${resource!.toLowerCase().replaceAll('_', '-')}.example.org`);
    if ('refusal' in host) throw new CliError('USAGE', host.refusal);
    if (!/^[a-z\d.-]+$/.test(host.value))
      throw new CliError(
        'USAGE',
        `--domain is "${printable(flags.domain!)}". Name one host, such as wiki.example.org.`,
      );
    const upstream = parseUpstream(flags.upstream);
    if ('refusal' in upstream) throw new CliError('USAGE', upstream.refusal);
    const { config } = await this.loadConfig();
    const made = await proxyConfiguration(name, {
      resource,
      upstream: upstream.value,
      host: host.value,
      guard: commandText(this.config, 'apikey:guard'),
      keyHeaders: config.credentials.flatMap((place) => (typeof place === 'string' ? [] : [place.header])),
    });
    if ('refusal' in made) throw new CliError('USAGE', made.refusal);
    const { configuration, files, guard } = made.value;
    const steps = [
      ...files.map(({ from, to }) => `Copy ${from} to ${to}.`),
      ...(guard === undefined ? [] : [`Start the guard: ${guard}`]),
      ...(await this.#declarations(resource, host.value)),
    ];
    await this.print({ proxy: name, configuration, files }, configuration.trimEnd());
    if (steps.length > 0 && !this.jsonEnabled()) await this.terminal.note(steps.join('\n'));
    return { proxy: name, configuration, files };
  }

  /** The steps that remain in svc-api.yaml. */
  async #declarations(resource: string | undefined, host: string): Promise<string[]> {
    if (resource === undefined) return [`Add routes for ${host} to svc-api.yaml, unless it has them already.`];
    // The list of features has some of the built-in resources.
    await import('../../../index.ts');
    const { resources } = createCatalog(await hostVocabulary(this.config));
    return resources.includes(resource)
      ? []
      : [`Declare the resource in svc-api.yaml, unless it has it already: "resources: [${resource}]".`];
  }
}
