import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { BaseCommand, examplesOf } from '../../../../../cli/base-command.ts';
import { CliError } from '../../../../../cli/errors.ts';
import { formatList, printable, suggestion } from '../../../../../keys/basics/index.ts';

export default class Template extends BaseCommand {
  static override group = 'Servers';
  static override isAtTop = true;
  static override summary = 'Print a svc-api.yaml for a service that has only one key of its own.';
  static override description =
    'The file has roles for readers, operators and administrators, routes of the API with expectations, and the ' +
    'service\'s own key from a file, which callers of "guard" never see. All other requests are for administrators.';
  static override examples = examplesOf([
    ['Write the configuration for Sonarr', 'sonarr --domain sonarr.example.org'],
    [
      'Set its address, and the file of its key',
      'immich --upstream http://10.0.0.7:2283 --service-key /etc/immich.key',
    ],
  ]);
  static override args = {
    service: Args.string({
      description: 'The service, such as sonarr or grafana. An unknown one lists them all.',
      required: true,
      ignoreStdin: true,
    }),
  };
  static override flags = {
    domain: Flags.string({
      description: 'Domain that clients use. Default: <service>.example.org.',
      helpValue: '<name>',
    }),
    upstream: Flags.string({
      description: 'Address of the service. Default: its usual port on this machine.',
      helpValue: '<url>',
    }),
    'service-key': Flags.string({
      description: "File of the service's own key. Default: /run/secrets/<service>.",
      helpValue: '<file>',
    }),
  };

  async run(): Promise<object> {
    const { args, flags } = await this.parse(Template);
    const { routeTemplate, templateNames } = await import('../../../cli/route-templates.ts');
    const names = templateNames();
    const name = names.find((each) => each === args.service);
    if (name === undefined) {
      const there = `${suggestion(args.service, names)}The services are ${formatList(names)}.`;
      throw new CliError('USAGE', `There is no template for "${printable(args.service)}". ${there}`);
    }
    const { parseHostPattern, parseUpstream } = await import('../../../index.ts');
    const host = parseHostPattern(flags.domain ?? `${name}.example.org`);
    if ('refusal' in host) throw new CliError('USAGE', host.refusal);
    if (host.value.includes('*'))
      throw new CliError('USAGE', `--domain is "${printable(flags.domain!)}". Name one host, without "*".`);
    const address = flags.upstream === undefined ? undefined : parseUpstream(flags.upstream);
    if (address && 'refusal' in address) throw new CliError('USAGE', address.refusal);
    const text = routeTemplate(name, { host: host.value, url: flags.upstream, file: flags['service-key'] });
    return this.printLines({ service: name, yaml: text }, text.trimEnd());
  }
}
