import { Command } from '@oclif/core';
import { clientFlags, withClient } from 'svc-api/feature';
import { feature } from './feature.js';

/** A command that does an operation with its arguments, and shows the deploys of the answer. */
export const commandOf = (operation, summary, args = {}) =>
  class extends Command {
    static summary = summary;
    static enableJsonFlag = true;
    static args = args;
    static flags = clientFlags;
    async run() {
      const { args: input, flags } = await this.parse(this.constructor);
      const answer = await withClient(this.config, flags, (client) => client.of(feature)[operation](input));
      for (const { id, what, asker, approver } of [answer].flat())
        this.log(`${id} ${what}, for ${asker}, ${approver ? `approved by ${approver}` : 'waiting'}`);
      return answer;
    }
  };
