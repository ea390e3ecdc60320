{# dbt run-operation optimize --args '{models: [events], revisions: all, dry_run: true}' #}
{% macro optimize(models=none, revisions=none, fraction=none, dry_run=none) %}
  {{ qbeast_run_operation('optimize', {
      'models': models, 'revisions': revisions, 'fraction': fraction, 'dry_run': dry_run}) }}
{% endmacro %}


{# For hooks: post_hook="{{ qbeast_optimize(this) }}" #}
{% macro qbeast_optimize(relation, revisions=none, fraction=none) %}
  {%- if execute and not qbeast_skips_optimize() -%}
    {%- set arguments = {} -%}
    {%- if revisions is not none %}{% do arguments.update({'revisions': revisions}) %}{% endif -%}
    {%- if fraction is not none %}{% do arguments.update({'fraction': fraction}) %}{% endif -%}
    {%- do log('optimize ' ~ relation.render() ~ ': '
               ~ adapter.qbeast_optimize_table(relation, arguments), info=true) -%}
  {%- endif -%}
{% endmacro %}


{# Applies the model's `optimize` after its rows are written. #}
{% macro qbeast_optimize_model(relation, spec, is_incremental_run) %}
  {%- if spec.optimizes_after(is_incremental_run) and not qbeast_skips_optimize() -%}
    {%- set done = adapter.qbeast_optimize_after_run(relation, spec) -%}
    {%- if done -%}{% do log('optimize ' ~ relation.render() ~ ': ' ~ done, info=true) %}{%- endif -%}
  {%- endif -%}
{% endmacro %}


{# With dbt run --vars '{qbeast_skip_optimize: true}', no model is optimized, whatever its
   configuration and hooks say. #}
{% macro qbeast_skips_optimize() %}
  {{ return(var('qbeast_skip_optimize', false) | string | lower == 'true') }}
{% endmacro %}
