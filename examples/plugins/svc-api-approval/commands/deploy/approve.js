import { Args } from '@oclif/core';
import { commandOf } from '../../command.js';

const id = Args.string({ required: true, description: 'Its id.' });
export default commandOf('approveDeploy', 'Approve a deploy that another key has asked for.', { id });
