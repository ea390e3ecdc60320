{# dbt run-operation optimize --args '{models: [events], revisions: all, dry_run: true}' #}
{% macro optimize(models=none, revisions=none, fraction=none, dry_run=none) %}
  {{ qbeast_operation('optimize', {
      'models': models, 'revisions': revisions, 'fraction': fraction, 'dry_run': dry_run}) }}
{% endmacro %}


{# A hook: post_hook="{{ qbeast_optimize(this) }}" #}
{% macro qbeast_optimize(relation, revisions=none, fraction=none) %}
  {%- if execute -%}
    {%- set arguments = {} -%}
    {%- if revisions is not none %}{% do arguments.update({'revisions': revisions}) %}{% endif -%}
    {%- if fraction is not none %}{% do arguments.update({'fraction': fraction}) %}{% endif -%}
    {%- do log('optimize ' ~ relation.render() ~ ': '
               ~ adapter.qbeast_optimize(relation, arguments), info=true) -%}
  {%- endif -%}
{% endmacro %}
